#if ServiceLifecycle
public import ServiceLifecycle

/// It exists if the package is used with the trait `ServiceLifecycle`.
extension CRUDClient: Service {
    /// Keeps the client open until the services of the application shut down gracefully, and then closes it as
    /// ``closeGracefully()`` does.
    ///
    /// It connects at once, so that the first call finds a connection. It does not fail where there is no daemon yet:
    /// calls wait for the daemon. In a `ServiceGroup` the client stands before the services that use it, which are
    /// shut down in the opposite order. If the task is cancelled, the client is closed at once.
    public func run() async throws {
        await withTaskGroup { group in
            group.addTask { try? await self.ping() }
            // It throws where the task is cancelled.
            try? await gracefulShutdown()
            group.cancelAll()
        }
        await closeGracefully()
    }
}
#endif
