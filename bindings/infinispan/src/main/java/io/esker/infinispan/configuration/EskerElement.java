package io.esker.infinispan.configuration;

/** The elements of the schema {@code urn:infinispan:config:store:esker}. */
enum EskerElement {
    /** A store, in the {@code persistence} of a cache. */
    ESKER_STORE("esker-store"),
    /** What stores take where they do not say themselves, in the {@code cache-container}. */
    ESKER_DEFAULTS("esker-defaults");

    private final String localName;

    EskerElement(String localName) {
        this.localName = localName;
    }

    /** Infinispan's writers take an element's name from here. */
    @Override
    public String toString() {
        return localName;
    }
}
