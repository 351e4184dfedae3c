package io.esker.kafka.wordcount;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;

/** The parts of the word count, each a process of its own. What they are is in {@code wordcount.sh}, which runs them. */
public final class Main {
    private Main() {}

    /**
     * Runs one part.
     *
     * @param args its name and what it needs
     */
    public static void main(String[] args) throws Exception {
        String part = args.length == 0 ? "" : args[0];
        switch (part) {
            case "ports" -> ports(Integer.parseInt(args[1]));
            case "produce" -> Words.produce(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            case "count" -> Instance.run(args[1], args[2], Path.of(args[3]), args[4]);
            case "check" -> Words.check(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]), Integer.parseInt(args[5]));
            default -> throw new IllegalArgumentException(
                    "ports COUNT | produce BROKER PARTITIONS RECORDS WORDS | count BROKER APPLICATION DIRECTORY esker|rocksdb"
                            + " | check BROKER APPLICATION RECORDS WORDS SECONDS");
        }
    }

    /** Prints ports of this machine that are free, all at once so that they differ. */
    private static void ports(int count) throws IOException {
        ServerSocket[] sockets = new ServerSocket[count];
        for (int i = 0; i < count; i++) sockets[i] = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        for (ServerSocket socket : sockets) {
            System.out.println(socket.getLocalPort());
            socket.close();
        }
    }
}
