import com.sun.nio.sctp.AbstractNotificationHandler;
import com.sun.nio.sctp.AssociationChangeNotification;
import com.sun.nio.sctp.HandlerResult;
import com.sun.nio.sctp.MessageInfo;
import com.sun.nio.sctp.PeerAddressChangeNotification;
import com.sun.nio.sctp.SctpChannel;
import com.sun.nio.sctp.SctpMultiChannel;
import com.sun.nio.sctp.SctpServerChannel;
import com.sun.nio.sctp.SctpStandardSocketOptions;
import com.sun.nio.sctp.ShutdownNotification;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Echo servers on com.sun.nio.sctp, and their client, which compares each answer.
 *
 * java Echo server|many PORT ADDRESS...
 * java Echo client PORT REMOTE COUNT ADDRESS...
 */
public class Echo {
    static final int STREAMS = 4;
    static boolean ended;

    static class Handler extends AbstractNotificationHandler<Void> {
        @Override
        public HandlerResult handleNotification(AssociationChangeNotification notification, Void nothing) {
            System.out.println(notification.event());
            ended = notification.event() == AssociationChangeNotification.AssocChangeEvent.SHUTDOWN;
            return ended ? HandlerResult.RETURN : HandlerResult.CONTINUE;
        }

        @Override
        public HandlerResult handleNotification(PeerAddressChangeNotification notification, Void nothing) {
            System.out.println(notification.address() + " " + notification.event());
            return HandlerResult.CONTINUE;
        }

        @Override
        public HandlerResult handleNotification(ShutdownNotification notification, Void nothing) {
            return HandlerResult.CONTINUE;
        }
    }

    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[1]);
        switch (words[0]) {
            case "server" -> server(port, Arrays.asList(words).subList(2, words.length));
            case "many" -> many(port, Arrays.asList(words).subList(2, words.length));
            default -> client(port, words[2], Integer.parseInt(words[3]),
                              Arrays.asList(words).subList(4, words.length));
        }
    }

    /** One association, of a one-to-one socket that a selector watches. */
    static void server(int port, List<String> addresses) throws Exception {
        try (SctpServerChannel listener = SctpServerChannel.open(); Selector selector = Selector.open()) {
            listener.bind(new InetSocketAddress(addresses.get(0), port));
            for (String address : addresses.subList(1, addresses.size())) {
                listener.bindAddress(InetAddress.getByName(address));
            }
            listener.configureBlocking(false);
            listener.register(selector, SelectionKey.OP_ACCEPT);
            System.out.println("listening");
            selector.select();
            SctpChannel channel = listener.accept();
            channel.configureBlocking(false);
            channel.register(selector, SelectionKey.OP_READ);
            ByteBuffer buffer = ByteBuffer.allocate(65536);
            for (;;) {
                selector.select();
                selector.selectedKeys().clear();
                buffer.clear();
                MessageInfo info = channel.receive(buffer, null, new Handler());
                if (info != null && info.bytes() < 0) {
                    break;
                }
                if (info != null) {
                    answer(info, buffer);
                    channel.send(buffer, MessageInfo.createOutgoing(null, info.streamNumber())
                        .payloadProtocolID(info.payloadProtocolID()));
                }
            }
            channel.close();
        }
    }

    /** A one-to-many socket, until its first association ends. */
    static void many(int port, List<String> addresses) throws Exception {
        try (SctpMultiChannel channel = SctpMultiChannel.open()) {
            channel.setOption(SctpStandardSocketOptions.SCTP_INIT_MAXSTREAMS,
                              SctpStandardSocketOptions.InitMaxStreams.create(STREAMS, STREAMS), null);
            channel.bind(new InetSocketAddress(addresses.get(0), port), 10);
            for (String address : addresses.subList(1, addresses.size())) {
                channel.bindAddress(InetAddress.getByName(address));
            }
            System.out.println("listening");
            ByteBuffer buffer = ByteBuffer.allocateDirect(65536);
            while (!ended) {
                buffer.clear();
                MessageInfo info = channel.receive(buffer, null, new Handler());
                if (info != null) {
                    answer(info, buffer);
                    channel.send(buffer, MessageInfo.createOutgoing(info.association(), null, info.streamNumber())
                        .payloadProtocolID(info.payloadProtocolID()));
                }
            }
        }
    }

    static void answer(MessageInfo info, ByteBuffer buffer) {
        if (!info.isComplete()) {
            throw new IllegalStateException("a part of a message");
        }
        buffer.flip();
    }

    static void client(int port, String remote, int count, List<String> addresses) throws Exception {
        try (SctpChannel channel = SctpChannel.open()) {
            channel.bind(new InetSocketAddress(addresses.get(0), 0));
            for (String address : addresses.subList(1, addresses.size())) {
                channel.bindAddress(InetAddress.getByName(address));
            }
            channel.connect(new InetSocketAddress(remote, port), STREAMS, STREAMS);
            ByteBuffer buffer = ByteBuffer.allocateDirect(65536);
            for (int number = 1; number <= count; number++) {
                byte[] sent = new byte[1 + number * 388 % 16000];
                Arrays.fill(sent, (byte) number);
                channel.send(ByteBuffer.wrap(sent),
                             MessageInfo.createOutgoing(null, number % STREAMS).payloadProtocolID(number));
                buffer.clear();
                MessageInfo info = channel.receive(buffer, null, new Handler());
                answer(info, buffer);
                byte[] received = new byte[buffer.remaining()];
                buffer.get(received);
                if (!Arrays.equals(sent, received) || info.streamNumber() != number % STREAMS
                        || info.payloadProtocolID() != number) {
                    throw new IllegalStateException("not the answer to message " + number + ": " + info);
                }
                if (number % 10 == 0) {
                    System.out.println("exchanged " + number);
                }
                Thread.sleep(10);
            }
            System.out.println("remote " + channel.getRemoteAddresses().stream()
                .map(address -> ((InetSocketAddress) address).getAddress().getHostAddress())
                .sorted().collect(Collectors.joining(" ")));
            channel.shutdown();
            while (!ended) {
                buffer.clear();
                channel.receive(buffer, null, new Handler());
            }
        }
    }
}
