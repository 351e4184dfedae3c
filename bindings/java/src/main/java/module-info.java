/** The embedded key-value store Esker. */
module io.esker {
    exports io.esker;
}
