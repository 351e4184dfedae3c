package io.esker.infinispan.cluster;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Three nodes, two owners for each entry, a store of its own for each node: killed one by one, all at once, and with a disk
 * that fills. Every entry whose write was acknowledged has to be there. {@code ClusterDrive DIRECTORY ENTRIES
 * [SMALL_DISK_COMMAND...]}; the command starts the JVM of a node whose directory {@code DIRECTORY/disk/c} is on a disk of a few
 * megabytes.
 */
public final class ClusterDrive {
    private final Path directory;
    private final int entries;
    private final List<String> onSmallDisk;
    private final int[] ports = new int[3];
    private final List<NodeProcess> nodes = new ArrayList<>();
    /** What was acknowledged: the keys' prefix, and value and ranges as the nodes take them. */
    private final List<String> acknowledged = new ArrayList<>();
    private int acknowledgedCount;

    private ClusterDrive(Path directory, int entries, List<String> onSmallDisk) throws IOException {
        this.directory = directory;
        this.entries = entries;
        this.onSmallDisk = onSmallDisk;
        List<ServerSocket> taken = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"));
            taken.add(socket);
            ports[i] = socket.getLocalPort();
        }
        for (ServerSocket socket : taken) {
            socket.close();
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<String> rest = List.of(arguments);
        ClusterDrive drive =
                new ClusterDrive(Path.of(arguments[0]), Integer.parseInt(arguments[1]), rest.subList(2, rest.size()));
        long start = System.nanoTime();
        try {
            drive.killsOneByOneAndAllAtOnce();
            if (!drive.onSmallDisk.isEmpty()) {
                drive.aDiskFills();
            }
        } finally {
            drive.nodes.stream().filter(NodeProcess::isAlive).forEach(NodeProcess::kill);
        }
        System.out.printf("cluster: passed in %d s%n", TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start));
    }

    private void killsOneByOneAndAllAtOnce() throws IOException {
        makeNodes(List.of());
        startAll();
        put(0, "one", 0, entries);
        check("three nodes");

        NodeProcess b = nodes.get(1);
        nodes.get(0).send("put one " + entries + " " + 2 * entries + " one");
        pause(300);
        b.kill();
        acknowledge("one", "one", nodes.get(0).answer());
        awaitMembers(2, 0, 2);
        put(2, "two", 0, entries);
        check("one node killed while it wrote");

        b.start();
        b.awaitStarted();
        awaitMembers(3, 0, 1, 2);
        check("that node is back");

        nodes.get(2).kill();
        awaitMembers(2, 0, 1);
        put(1, "three", 0, entries);
        check("another one killed");

        NodeProcess c = nodes.get(2);
        c.start();
        c.awaitStarted();
        awaitMembers(3, 0, 1, 2);
        check("all three again");

        nodes.forEach(NodeProcess::kill);
        rescue();
        check("all killed at once");

        staleEntries();
        stopAll();
    }

    /**
     * Nodes that start when no other is left share out the segments anew, and drop what they had of those that they are not
     * given: that is Infinispan's way, with any store that is not shared. So the new cluster begins with empty directories, and
     * is given what is in the old ones.
     */
    private void rescue() throws IOException {
        for (NodeProcess node : nodes) {
            Files.move(directory.resolve("kills").resolve(node.toString()), old(node));
        }
        startAll();
        int onDisks = 0;
        for (NodeProcess node : nodes) {
            onDisks += Integer.parseInt(node.ask("rescue " + old(node)));
        }
        System.out.println("cluster: the disks of three nodes that were killed at once have " + onDisks + " entries, for "
                + acknowledgedCount + " with two owners each");
        if (onDisks < 2 * acknowledgedCount) {
            throw new IllegalStateException("an acknowledged entry is not on the disks of both its owners");
        }
    }

    private Path old(NodeProcess node) {
        return directory.resolve("kills").resolve(node + "-old");
    }

    /** What Infinispan warns of: a store that was away, and is not purged, may bring entries back that were removed meanwhile. */
    private void staleEntries() {
        for (boolean purge : new boolean[] {false, true}) {
            String prefix = purge ? "purged" : "stale";
            put(0, prefix, 0, 200);
            nodes.get(2).kill();
            awaitMembers(2, 0, 1);
            check("a node goes away, purge=" + purge);
            nodes.get(0).ask("remove " + prefix + " 200");
            acknowledged.remove(acknowledged.size() - 1);
            acknowledgedCount -= 200;
            nodes.get(2).start(purge);
            nodes.get(2).awaitStarted();
            awaitMembers(3, 0, 1, 2);
            int back = found(nodes.get(2).ask("check " + prefix + " " + prefix + ":0-200"));
            System.out.println("cluster: purge=" + purge + ": of 200 entries that were removed while a node was away "
                    + back + " are back with it");
            if (purge && back > 0) {
                throw new IllegalStateException("a purged store brought entries back");
            }
        }
        check("nodes that were away");
    }

    /** The number that an answer begins with. */
    private static int found(String answer) {
        int space = answer.indexOf(' ');
        return Integer.parseInt(space < 0 ? answer : answer.substring(0, space));
    }

    private void aDiskFills() throws IOException {
        acknowledged.clear();
        acknowledgedCount = 0;
        makeNodes(onSmallDisk);
        startAll();
        put(0, "before", 0, entries);
        int refused = 0;
        String why = "";
        // So long that it stays in the log, where nothing is packed.
        String large = "x".repeat(8000);
        for (int round = 0; round < 60 && why.isEmpty(); round++) {
            String answer = nodes.get(0).ask("put fill" + round + " 0 100 " + large);
            acknowledge("fill" + round, large, answer);
            int failure = answer.indexOf(" failure ");
            if (failure >= 0) {
                why = answer.substring(failure + 9);
                refused++;
            }
        }
        if (refused == 0) {
            throw new IllegalStateException("the small disk did not fill");
        }
        if (!why.contains("Esker store of cache 'trees'")) {
            throw new IllegalStateException("the write was not refused by the store: " + why);
        }
        System.out.println("cluster: a full disk says: " + why.substring(why.indexOf("Esker store")).split(";")[0]);
        check("a full disk on one node");
        nodes.get(2).kill();
        awaitMembers(2, 0, 1);
        put(1, "after", 0, entries);
        check("the node with the full disk killed");
        stopAll();
    }

    private void makeNodes(List<String> beforeTheThird) throws IOException {
        nodes.clear();
        String all = "127.0.0.1[" + ports[0] + "],127.0.0.1[" + ports[1] + "],127.0.0.1[" + ports[2] + "]";
        Path parent = Files.createDirectories(directory.resolve(beforeTheThird.isEmpty() ? "kills" : "disk"));
        for (int i = 0; i < 3; i++) {
            String name = "abc".substring(i, i + 1);
            Files.createDirectories(parent.resolve(name));
            nodes.add(new NodeProcess(name, i == 2 ? beforeTheThird : List.of(), ports[i], all, parent.resolve(name)));
        }
    }

    private void startAll() {
        // One first, so that the others join it and need not be merged.
        nodes.get(0).start();
        nodes.get(0).awaitStarted();
        nodes.subList(1, 3).forEach(NodeProcess::start);
        nodes.subList(1, 3).forEach(NodeProcess::awaitStarted);
        awaitMembers(3, 0, 1, 2);
    }

    private void stopAll() {
        List<NodeProcess> running = nodes.stream().filter(NodeProcess::isAlive).toList();
        running.forEach(node -> node.send("stop"));
        running.forEach(NodeProcess::answer);
        running.forEach(NodeProcess::kill);
    }

    private void put(int node, String prefix, int from, int to) {
        String answer = nodes.get(node).ask("put " + prefix + " " + from + " " + to + " " + prefix);
        if (answer.contains("failure")) {
            throw new IllegalStateException("a write failed: " + answer);
        }
        acknowledge(prefix, prefix, answer);
    }

    private void acknowledge(String prefix, String value, String answer) {
        int end = answer.indexOf(" failure ");
        String[] ranges = (end < 0 ? answer : answer.substring(0, end)).split(" ");
        if (!ranges[0].equals("acknowledged")) {
            throw new IllegalStateException(answer);
        }
        if (ranges.length == 1) {
            return;
        }
        StringBuilder joined = new StringBuilder(prefix + " " + value + ":");
        for (int i = 1; i < ranges.length; i++) {
            String[] bounds = ranges[i].split("-");
            acknowledgedCount += Integer.parseInt(bounds[1]) - Integer.parseInt(bounds[0]);
            joined.append(i == 1 ? "" : ",").append(ranges[i]);
        }
        acknowledged.add(joined.toString());
    }

    /** Every node that runs finds every entry that was acknowledged. */
    private void check(String when) {
        StringBuilder found = new StringBuilder();
        for (NodeProcess node : nodes) {
            if (node.isAlive()) {
                int right = 0;
                String wrong = "";
                for (String some : acknowledged) {
                    String answer = node.ask("check " + some);
                    right += found(answer);
                    wrong += answer.contains(" ") ? answer.substring(answer.indexOf(' ')) : "";
                }
                if (right != acknowledgedCount) {
                    throw new IllegalStateException(when + ": node " + node + " finds " + right + " of "
                            + acknowledgedCount + " acknowledged entries;" + wrong);
                }
                found.append(' ').append(node).append('=').append(right);
            }
        }
        System.out.println("cluster: " + when + ": " + acknowledgedCount + " acknowledged, found by" + found);
    }

    /** Waits until these nodes see that many members and have shared out the entries among them. */
    private void awaitMembers(int members, int... which) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        for (int i : which) {
            while (!nodes.get(i).ask("members").equals(Integer.toString(members))
                    || !nodes.get(i).ask("balanced").equals("true")) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException("node " + nodes.get(i) + " does not see " + members + " members");
                }
                pause(50);
            }
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
