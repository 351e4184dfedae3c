package io.esker.infinispan;

import io.esker.EskerException;
import java.util.function.Supplier;
import org.infinispan.persistence.spi.PersistenceException;

/** Turns what the Esker library throws into what Infinispan expects of a store. */
final class Failures {
    private Failures() {}

    /** Calls the library; anything it throws becomes a {@link PersistenceException} that says which cache it was. */
    static <T> T translated(String cache, Supplier<T> call) {
        try {
            return call.get();
        } catch (RuntimeException e) {
            throw translate(cache, e);
        }
    }

    /** The exception to throw for one that the library threw. */
    static RuntimeException translate(String cache, RuntimeException e) {
        if (e instanceof EskerException || e instanceof IllegalStateException || e instanceof IllegalArgumentException) {
            return new PersistenceException("Esker store of cache '" + cache + "': " + e.getMessage(), e);
        }
        return e;
    }
}
