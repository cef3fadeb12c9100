%% An echo server on gen_sctp, and its client, which compares each answer.
%%
%%   erl -noshell -run echo main server PORT ADDRESS...
%%   erl -noshell -run echo main client PORT REMOTE COUNT ADDRESS...
-module(echo).
-export([main/1]).
-include_lib("kernel/include/inet_sctp.hrl").

-define(STREAMS, 4).
-define(TIMEOUT, 60000).

main(["server", Port | Addresses]) ->
    Socket = open(list_to_integer(Port), Addresses),
    ok = gen_sctp:listen(Socket, true),
    io:format("listening~n"),
    serve(Socket),
    halt(0);
main(["client", Port, Remote, Count | Addresses]) ->
    Socket = open(0, Addresses),
    {ok, Peer} = inet:parse_address(Remote),
    {ok, #sctp_assoc_change{state = comm_up, assoc_id = Id, outbound_streams = ?STREAMS} = Association} =
        gen_sctp:connect(Socket, Peer, list_to_integer(Port), []),
    exchange(Socket, Id, 1, list_to_integer(Count)),
    {ok, Remotes} = inet:peernames(Socket, Id),
    io:format("remote ~s~n", [lists:join(" ", lists:sort([inet:ntoa(Address) || {Address, _} <- Remotes]))]),
    ok = gen_sctp:eof(Socket, Association),
    ended(Socket, Id),
    ok = gen_sctp:close(Socket),
    halt(0).

open(Port, Addresses) ->
    Bound = [{ip, element(2, {ok, _} = inet:parse_address(Address))} || Address <- Addresses],
    Streams = #sctp_initmsg{num_ostreams = ?STREAMS, max_instreams = ?STREAMS},
    {ok, Socket} = gen_sctp:open(Port, [binary, {active, false}, {recbuf, 65536}, {sctp_initmsg, Streams} | Bound]),
    Socket.

%% Until the first association ends.
serve(Socket) ->
    case gen_sctp:recv(Socket, ?TIMEOUT) of
        {ok, {_, _, [#sctp_sndrcvinfo{} = Info], Data}} when is_binary(Data) ->
            ok = gen_sctp:send(Socket, #sctp_sndrcvinfo{stream = Info#sctp_sndrcvinfo.stream,
                                                        ppid = Info#sctp_sndrcvinfo.ppid,
                                                        assoc_id = Info#sctp_sndrcvinfo.assoc_id}, Data),
            serve(Socket);
        {ok, {_, _, _, #sctp_assoc_change{state = shutdown_comp}}} ->
            ok = gen_sctp:close(Socket);
        {ok, {_, _, _, Event}} ->
            io:format("~p~n", [Event]),
            serve(Socket)
    end.

exchange(_, _, N, Count) when N > Count -> ok;
exchange(Socket, Id, N, Count) ->
    Stream = N rem ?STREAMS,
    Data = binary:copy(<<N:32>>, 1 + N * 97 rem 4000),
    ok = gen_sctp:send(Socket, #sctp_sndrcvinfo{stream = Stream, ppid = N, assoc_id = Id}, Data),
    {#sctp_sndrcvinfo{stream = Stream, ppid = N}, Data} = message(Socket, Id),
    N rem 10 =:= 0 andalso io:format("exchanged ~w~n", [N]),
    timer:sleep(10),
    exchange(Socket, Id, N + 1, Count).

message(Socket, Id) ->
    case gen_sctp:recv(Socket, ?TIMEOUT) of
        {ok, {_, _, [#sctp_sndrcvinfo{assoc_id = Id} = Info], Data}} when is_binary(Data) -> {Info, Data};
        {ok, {_, _, _, #sctp_paddr_change{}}} -> message(Socket, Id)
    end.

ended(Socket, Id) ->
    case gen_sctp:recv(Socket, ?TIMEOUT) of
        {ok, {_, _, _, #sctp_assoc_change{state = shutdown_comp, assoc_id = Id}}} -> ok;
        {ok, {_, _, _, Event}} when not is_binary(Event) -> ended(Socket, Id)
    end.
