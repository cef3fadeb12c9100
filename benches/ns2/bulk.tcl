# One file over one path in ns-2 (Agent/SCTP), the same setting as scenarios/bulk-3-percent.toml:
# interface -100 Mbit/s 10 ms- R -10 Mbit/s 25 ms- R' -100 Mbit/s 10 ms- interface, Bernoulli loss on
# the core link each way, receive window 64 KiB. No traces, unless asked for.
#
#   ns bulk.tcl [MEBIBYTES [LOSS [SEED [TRACE]]]]
#
# TRACE is a file for the packets that reach the receiver; its last line of 1500 bytes tells when the
# transfer ended. A run that is timed has none.

set mebibytes [expr {$argc > 0 ? [lindex $argv 0] : 80}]
set loss      [expr {$argc > 1 ? [lindex $argv 1] : 0.03}]
set seed      [expr {$argc > 2 ? [lindex $argv 2] : 1}]
set trace     [expr {$argc > 3 ? [lindex $argv 3] : ""}]

set chunk  1452 ;# bytes of data in a full DATA chunk of a 1500 byte packet
set chunks [expr {int(ceil($mebibytes * 1048576.0 / $chunk))}]

set ns [new Simulator]
foreach node {sender left right receiver} { set $node [$ns node] }
$ns duplex-link $sender $left    100Mb 10ms DropTail
$ns duplex-link $left   $right    10Mb 25ms DropTail
$ns duplex-link $right  $receiver 100Mb 10ms DropTail
foreach {from to} [list $sender $left $left $right $right $receiver] {
    $ns queue-limit $from $to 1000
    $ns queue-limit $to $from 1000
}

# A generator for each direction: one direction's losses do not shift the other's.
proc lose {from to rate number} {
    global ns
    set generator [new RNG]
    $generator seed $number
    set dice [new RandomVariable/Uniform]
    $dice use-rng $generator
    set module [new ErrorModel]
    $module unit pkt
    $module set rate_ $rate
    $module ranvar $dice
    $module drop-target [new Agent/Null]
    $ns lossmodel $module $from $to
}
if {$loss > 0} {
    lose $left $right $loss [expr {2 * $seed}]
    lose $right $left $loss [expr {2 * $seed + 1}]
}

set source [new Agent/SCTP]
set sink   [new Agent/SCTP]
$ns attach-agent $sender $source
$ns attach-agent $receiver $sink
foreach agent [list $source $sink] {
    $agent set mtu_ 1500
    $agent set dataChunkSize_ 1468
    $agent set numOutStreams_ 1
    $agent set initialRwnd_ 65536
    $agent set initialSsthresh_ 65536
    $agent set initialRto_ 3.0
    $agent set minRto_ 1.0
    $agent set maxRto_ 60.0
    $agent set fastRtxTrigger_ 4
    $agent set pathMaxRetrans_ 5
    $agent set associationMaxRetrans_ 10
    $agent set useDelayedSacks_ 1
    $agent set heartbeatInterval_ 0
}
$ns connect $source $sink

set ftp [new Application/FTP]
$ftp attach-agent $source

# Without heartbeats nothing is left to do once all is acknowledged. One event far ahead keeps the
# calendar from running empty, which this release does not survive.
if {$trace ne ""} {
    set arrivals [open $trace w]
    $ns trace-queue $right $receiver $arrivals
}
$ns at 0.0 "$ftp send [expr {$chunks * $chunk}]"
$ns at 5000.0 {
    if {$trace ne ""} { $ns flush-trace; close $arrivals }
    puts "chunks $chunks loss $loss seed $seed"
    exit 0
}
$ns run
