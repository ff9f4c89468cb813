import CRUDConfiguration
import CRUDModel

/// Why a reload changes nothing: lines for the log, and what its caller is told.
struct ReloadRefusal: Error {
    let lines: [String]
    let error: CRUDError

    /// How many faults a caller is told, and how many lines; the log has them all.
    private static let maximumTold = 10

    /// - Parameter faults: at least one.
    init(_ faults: [ConfigurationFault]) {
        lines = faults.map(\.description)
        let rest = faults.count - Self.maximumTold
        let told = lines.prefix(Self.maximumTold).joined(separator: "; ")
        error = CRUDError(
            .invalidConfiguration, rest > 0 ? "\(told); and \(rest) more, see the daemon's log" : told,
            details: .init(file: faults.first?.file, line: faults.first?.line, column: faults.first?.column))
    }

    /// Something other than the configuration stands in the way.
    init(unavailable message: String) {
        lines = [message]
        error = CRUDError(.unavailable, message)
    }
}
