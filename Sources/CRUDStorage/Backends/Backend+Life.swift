package import CRUDPluginHost
package import CRUDThreads

extension Backend {
    /// Starts the backend's thread, which opens the storage.
    ///
    /// - Parameter opened: called once, on that thread, with the outcome of the first attempt. After a failure that is
    ///   final (``PluginFailure/isFinal``) no other attempt is made.
    package func start(opened: @escaping @Sendable (PluginFailure?) -> Void) throws(ThreadFailure) {
        started(by: try Thread(named: "w:\(name)") { [self] in BackendSupervisor.run(self, opened: opened) })
    }
}
