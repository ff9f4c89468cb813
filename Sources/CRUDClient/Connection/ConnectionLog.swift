import CRUDModel

#if Logging
import Logging
#endif

/// What the application's log is told of a connection; nothing without the package trait `Logging`.
///
/// No entry has an id, an item or a collection.
struct ConnectionLog {
    /// What happens to a connection.
    enum Event {
        /// The daemon has replied to the hello.
        ///
        /// - Parameter isAgain: whether there was a connection, or an attempt, before.
        case connected(isAgain: Bool)
        /// The connection has ended, and the client will make another one when it has something to send.
        case lost(CRUDError)
        /// An attempt to connect has failed.
        ///
        /// - Parameter count: how many in a row have.
        case failed(CRUDError, count: Int)
        case violated(CRUDError)
    }

    #if Logging
    /// Nil: nothing is logged.
    let logger: Logger?

    func note(_ event: Event, path: String) {
        guard let logger else { return }
        let metadata: Logger.Metadata = ["socket": .string(path)]
        switch event {
        case .connected(let isAgain):
            logger.log(
                level: isAgain ? .notice : .debug, "connected to the daemon\(isAgain ? " again" : "")",
                metadata: metadata)
        case .lost(let error):
            logger.warning("\(error.text)", metadata: metadata)
        case .failed(let error, let count):
            // One line for each outage; the later failures are shown with the level debug only.
            logger.log(level: count == 1 ? .warning : .debug, "\(error.text)", metadata: metadata)
        case .violated(let error):
            logger.error("\(error.text)", metadata: metadata)
        }
    }
    #else
    func note(_ event: Event, path: String) {}
    #endif
}
