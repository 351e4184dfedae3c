package io.esker;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Function;

/**
 * Reads reports as the library writes them: numbers of 8 bytes, little-endian; texts and lists with their lengths in front;
 * what may be missing behind a number that is 0 or 1.
 */
final class Decoder {
    private final ByteBuffer bytes;

    Decoder(byte[] bytes) {
        this.bytes = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private long number() {
        return bytes.getLong();
    }

    private byte[] bytes() {
        byte[] part = new byte[(int) number()];
        bytes.get(part);
        return part;
    }

    String text() {
        return new String(bytes(), StandardCharsets.UTF_8);
    }

    <T> List<T> list(Function<Decoder, T> element) {
        long count = number();
        List<T> list = new ArrayList<>();
        for (long at = 0; at < count; at++) list.add(element.apply(this));
        return List.copyOf(list);
    }

    private <T> Optional<T> optional(Function<Decoder, T> element) {
        return number() == 0 ? Optional.empty() : Optional.of(element.apply(this));
    }

    private Finding finding() {
        String file = text();
        OptionalLong offset = number() == 0 ? OptionalLong.empty() : OptionalLong.of(number());
        return new Finding(file, offset, optional(Decoder::bytes), optional(Decoder::bytes), text());
    }

    VerifyReport verifyReport() {
        return new VerifyReport(number(), number(), number(), list(Decoder::finding));
    }

    RepairReport repairReport() {
        return new RepairReport(number() != 0, number(), number(),
                list(Decoder::finding), list(Decoder::finding), list(Decoder::finding));
    }

    private RunStats run() {
        return new RunStats(number(), number(), number(), number(), number(), number(), number());
    }

    private KeyspaceStats keyspace() {
        return new KeyspaceStats(text(), number(), text(), text(), number(), list(Decoder::run), number(), number());
    }

    Stats stats() {
        return new Stats(list(Decoder::keyspace), number(), number(), number(), number(), number(), number(), number(),
                number(), number(), number(), number(), number(), number(), number(), number(), number(), number(), number(),
                number(), number(), optional(Decoder::text));
    }
}
