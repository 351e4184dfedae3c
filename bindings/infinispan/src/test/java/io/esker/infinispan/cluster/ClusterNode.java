package io.esker.infinispan.cluster;

import io.esker.infinispan.configuration.EskerStoreConfigurationBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;

/**
 * A node of the cluster: {@code ClusterNode NAME PORT PORTS DIRECTORY PURGE}. It reads commands from its standard input, one a
 * line, and answers each with one line. Its store alone knows most entries: memory keeps 100.
 */
public final class ClusterNode {
    private static final int IN_MEMORY = 100;
    private static final int SEGMENTS = 64;

    private final DefaultCacheManager manager;
    private final Cache<String, String> cache;
    private final ExecutorService threads = Executors.newFixedThreadPool(4);

    private ClusterNode(String name, int port, String ports, Path directory, boolean purge) throws IOException {
        manager = new DefaultCacheManager(container(name, port, ports, directory).build());
        ConfigurationBuilder trees = new ConfigurationBuilder();
        trees.clustering().cacheMode(CacheMode.DIST_SYNC).remoteTimeout(5, TimeUnit.SECONDS)
                .hash().numOwners(2).numSegments(SEGMENTS);
        trees.memory().maxCount(IN_MEMORY);
        trees.persistence().addStore(EskerStoreConfigurationBuilder.class).location(directory.toString()).purgeOnStartup(purge);
        manager.defineConfiguration("trees", trees.build());
        cache = manager.getCache("trees");
    }

    private static GlobalConfigurationBuilder container(String name, int port, String ports, Path directory) throws IOException {
        Path stack = directory.resolveSibling("jgroups-" + name + ".xml");
        Files.writeString(stack, """
                <config xmlns="urn:org:jgroups">
                  <TCP bind_addr="127.0.0.1" bind_port="%d" port_range="0" diag.enabled="false" sock_conn_timeout="300"/>
                  <TCPPING initial_hosts="%s" port_range="0"/>
                  <MERGE3 min_interval="1000" max_interval="3000"/>
                  <FD_SOCK2 offset="100" port_range="3"/>
                  <FD_ALL3 timeout="4000" interval="1000"/>
                  <VERIFY_SUSPECT2 timeout="500"/>
                  <pbcast.NAKACK2 use_mcast_xmit="false"/>
                  <UNICAST3/>
                  <pbcast.STABLE/>
                  <pbcast.GMS join_timeout="1000" print_local_addr="false"/>
                  <UFC/>
                  <MFC/>
                  <FRAG4/>
                </config>
                """.formatted(port, ports));
        GlobalConfigurationBuilder container = GlobalConfigurationBuilder.defaultClusteredBuilder();
        container.transport().nodeName(name).clusterName("esker").addProperty("configurationFile", stack.toString());
        container.jmx().disable();
        return container;
    }

    /** Runs until its input ends or it is killed. */
    public static void main(String[] arguments) throws Exception {
        // Answers have the real standard output for themselves.
        PrintStream answers = System.out;
        System.setOut(System.err);
        ClusterNode node;
        try {
            node = new ClusterNode(arguments[0], Integer.parseInt(arguments[1]), arguments[2], Path.of(arguments[3]),
                    Boolean.parseBoolean(arguments[4]));
        } catch (Exception | Error e) {
            answers.println("error " + messages(e));
            // Threads of Infinispan's may be running already.
            System.exit(1);
            return;
        }
        answers.println("started");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = node.answer(line.split(" "));
            } catch (Exception e) {
                answer = "error " + e;
            }
            answers.println(answer.replace('\n', ' '));
            if (line.equals("stop")) {
                System.exit(0);
            }
        }
    }

    private String answer(String[] command) throws Exception {
        return switch (command[0]) {
            case "put" -> put(command[1], Integer.parseInt(command[2]), Integer.parseInt(command[3]), command[4]);
            case "check" -> check(command[1], command[2]);
            case "members" -> Integer.toString(manager.getMembers().size());
            case "balanced" -> Boolean.toString(isBalanced());
            case "remove" -> remove(command[1], Integer.parseInt(command[2]));
            case "rescue" -> rescue(Path.of(command[1]));
            case "stop" -> {
                manager.stop();
                yield "stopped";
            }
            default -> "error unknown command";
        };
    }

    private boolean isBalanced() {
        var distribution = cache.getAdvancedCache().getDistributionManager();
        return !distribution.isRehashInProgress() && distribution.getCacheTopology().getPendingCH() == null;
    }

    /** Puts keys PREFIX-from to PREFIX-to with four threads, and says which were acknowledged, as ranges. */
    private String put(String prefix, int from, int to, String value) throws InterruptedException, ExecutionException {
        AtomicInteger next = new AtomicInteger(from);
        List<Future<?>> work = new ArrayList<>();
        boolean[] acknowledged = new boolean[to];
        String[] failure = new String[1];
        for (int t = 0; t < 4; t++) {
            work.add(threads.submit(() -> {
                for (int i = next.getAndIncrement(); i < to; i = next.getAndIncrement()) {
                    try {
                        cache.put(prefix + "-" + i, value + "-" + i);
                        acknowledged[i] = true;
                    } catch (RuntimeException e) {
                        failure[0] = messages(e);
                    }
                }
            }));
        }
        for (Future<?> each : work) {
            each.get();
        }
        return "acknowledged" + ranges(acknowledged) + (failure[0] == null ? "" : " failure " + failure[0]);
    }

    private String remove(String prefix, int count) {
        for (int i = 0; i < count; i++) {
            cache.remove(prefix + "-" + i);
        }
        return "removed";
    }

    /** Gives the cluster what it lacks of a directory that another cluster had; how many entries that directory has. */
    private String rescue(Path old) throws IOException {
        GlobalConfigurationBuilder container = new GlobalConfigurationBuilder().nonClusteredDefault();
        container.jmx().disable();
        Map<String, String> found = new HashMap<>();
        try (DefaultCacheManager reader = new DefaultCacheManager(container.build())) {
            ConfigurationBuilder trees = new ConfigurationBuilder();
            trees.clustering().hash().numSegments(SEGMENTS);
            trees.persistence().addStore(EskerStoreConfigurationBuilder.class).location(old.toString());
            reader.defineConfiguration("trees", trees.build());
            try (var entries = reader.<String, String>getCache("trees").entrySet().iterator()) {
                entries.forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue()));
            }
        }
        CompletableFuture.allOf(found.entrySet().stream()
                .map(entry -> cache.putIfAbsentAsync(entry.getKey(), entry.getValue()))
                .toArray(CompletableFuture[]::new)).join();
        return Integer.toString(found.size());
    }

    private static String messages(Throwable thrown) {
        StringBuilder all = new StringBuilder();
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            all.append(cause.getClass().getSimpleName()).append(": ").append(cause.getMessage()).append("; ");
        }
        return all.toString().replace('\n', ' ');
    }

    private static String ranges(boolean[] set) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < set.length; i++) {
            if (set[i] && (i == 0 || !set[i - 1])) {
                int end = i;
                while (end < set.length && set[end]) {
                    end++;
                }
                text.append(' ').append(i).append('-').append(end);
            }
        }
        return text.toString();
    }

    /** Reads keys PREFIX-i of ranges "a-b,c-d", and says how many had the value, and the first that did not. */
    private String check(String prefix, String valueAndRanges) {
        String[] parts = valueAndRanges.split(":");
        int right = 0;
        String wrong = "";
        for (String range : parts[1].split(",")) {
            int from = Integer.parseInt(range.substring(0, range.indexOf('-')));
            int to = Integer.parseInt(range.substring(range.indexOf('-') + 1));
            for (int i = from; i < to; i++) {
                String found = cache.get(prefix + "-" + i);
                if ((parts[0] + "-" + i).equals(found)) {
                    right++;
                } else if (wrong.isEmpty()) {
                    wrong = " first wrong: " + prefix + "-" + i + " is " + found;
                }
            }
        }
        return right + wrong;
    }
}
