import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDThreads
import Logging

/// The whole life of a backend's thread: it opens the storage, has it served, and opens it again when a child is lost.
enum BackendSupervisor {
    static func run(_ backend: Backend, opened: (PluginFailure?) -> Void) {
        let callbacks = PluginHostCallbacks(
            backend: backend.name, logger: backend.logger,
            state: { [weak backend] isUp, reason in backend?.storageState(isUp: isUp, reason) },
            changed: { [weak backend] name in backend?.feeds.changed(named: name) })
        var policy = RestartPolicy(isChild: backend.plugin.isChild)
        var isFirst = true
        var hasBeenOpen = false
        while true {
            let expected = backend.environment.identity.expected
            callbacks.expect(expected)
            let pause: Duration
            do throws(PluginFailure) {
                backend.becomeOpening()
                let worker = try BackendWorker(backend, callbacks)
                if isFirst { opened(nil) }
                backend.logger.info("backend \(backend.name) is open")
                if !hasBeenOpen { backend.opened() }
                hasBeenOpen = true
                let loss = worker.work()
                if loss == nil { backend.become(.closed) }
                worker.close()
                guard let loss else { return }
                backend.lost(loss.reason)
                pause = policy.failed(hasServed: loss.hasServed)
            } catch {
                backend.become(.down)
                // Where any storage will do and there is none, it is made unless the configuration is refused.
                let isAwaited = error.isOfStorage && expected == .any
                if !isAwaited { _ = backend.failures.report(error, during: "open") }
                if isFirst { opened(error) }
                // A child's file may be replaced by a better one; what was loaded stays as it is.
                if error.isFinal, !(backend.plugin.isChild && hasBeenOpen) {
                    backend.writes.close()
                    _ = refuse(until: nil, backend)
                    return
                }
                let isOfStorage = Int(error.status) == CRUDD_UNAVAILABLE || error.isOfStorage
                pause = isOfStorage ? policy.wasUnavailable() : policy.failed(hasServed: false)
            }
            isFirst = false
            if policy.isCircuitOpen {
                backend.logger.error("backend \(backend.name) has failed \(policy.failures) times in a row")
            }
            if pause > .zero, !refuse(until: .now + pause, backend) { return backend.become(.closed) }
        }
    }

    /// Refuses what is queued, and what comes until it is time to try again.
    ///
    /// - Parameter end: nil: the storage can never be opened.
    /// - Returns: false once the backend is to stop and nothing is queued any more.
    private static func refuse(until end: ContinuousClock.Instant?, _ backend: Backend) -> Bool {
        while true {
            let rest = end.map { $0 - .now }
            if let rest, rest <= .zero { return true }
            switch backend.writes.take(timeout: rest) {
            case .items(let queued): backend.refuse(queued)
            case .timedOut: return true
            case .woken: continue
            case .closed: return false
            }
        }
    }
}
