package io.esker.kafka;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Supplies Esker's stores for all operators of the DSL that name no store of their own. Set as {@code dsl.store.suppliers.class} it
 * moves a whole topology over; it can also be given to {@code Materialized.as} or {@code StreamJoined.withDslStoreSuppliers}.
 */
public class EskerDslStoreSuppliers implements DslStoreSuppliers {
    /** For Kafka Streams, which makes it by the name of the class. */
    public EskerDslStoreSuppliers() {}

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return switch (params.dslStoreFormat()) {
            case PLAIN -> EskerStores.persistentKeyValueStore(params.name());
            case TIMESTAMPED -> EskerStores.persistentTimestampedKeyValueStore(params.name());
            case HEADERS -> EskerStores.persistentTimestampedKeyValueStoreWithHeaders(params.name());
        };
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        boolean onClose = params.emitStrategy().type() == EmitStrategy.StrategyType.ON_WINDOW_CLOSE;
        return EskerStores.window(params.name(), format(params.dslStoreFormat(), Format.TIMESTAMPED), params.retentionPeriod(),
                params.windowSize(), params.retainDuplicates(), onClose);
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        boolean onClose = params.emitStrategy().type() == EmitStrategy.StrategyType.ON_WINDOW_CLOSE;
        Format format = params.storeFormat() == DslStoreFormat.HEADERS ? Format.HEADERS : Format.PLAIN;
        return EskerStores.session(params.name(), format, params.retentionPeriod(), onClose);
    }

    private static Format format(DslStoreFormat given, Format otherwise) {
        return given == null ? otherwise : Format.valueOf(given.name());
    }
}
