package io.esker.infinispan.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A JVM that runs {@link ClusterNode}, and the pipe to it. */
final class NodeProcess {
    private static final int ANSWER_SECONDS = 60;

    private final String name;
    private final List<String> command;
    private final Path errors;
    private Process process;
    private BufferedReader answers;
    private PrintWriter commands;

    /** A node that does not run yet. {@code before} goes before the JVM's own command. */
    NodeProcess(String name, List<String> before, int port, String ports, Path directory) {
        this.name = name;
        errors = directory.resolveSibling(name + ".log");
        command = new ArrayList<>(before);
        command.addAll(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx160m",
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true",
                "-cp", System.getProperty("java.class.path"), ClusterNode.class.getName(),
                name, Integer.toString(port), ports, directory.toString()));
    }

    void start() {
        start(false);
    }

    /** Starts it; with {@code purge} its store is emptied first. */
    void start(boolean purge) {
        List<String> whole = new ArrayList<>(command);
        whole.add(Boolean.toString(purge));
        try {
            process = new ProcessBuilder(whole)
                    .redirectError(ProcessBuilder.Redirect.appendTo(errors.toFile())).start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        answers = process.inputReader();
        commands = new PrintWriter(process.outputWriter(), true);
    }

    void awaitStarted() {
        expect("started", answer());
    }

    String ask(String line) {
        send(line);
        return answer();
    }

    void send(String line) {
        commands.println(line);
    }

    String answer() {
        try {
            return CompletableFuture.supplyAsync(() -> {
                try {
                    return String.valueOf(answers.readLine());
                } catch (IOException e) {
                    return "error " + e;
                }
            }).get(ANSWER_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            throw new IllegalStateException(name + " does not answer; see " + errors);
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    /** As {@code kill -9} does. */
    void kill() {
        // Descendants too: where the JVM was started by way of another command, that is the one we know.
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        try {
            process.waitFor(20, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    boolean isAlive() {
        return process != null && process.isAlive();
    }

    private void expect(String expected, String found) {
        if (!expected.equals(found)) {
            throw new IllegalStateException(name + " says '" + found + "' and not '" + expected + "'; see " + errors);
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
