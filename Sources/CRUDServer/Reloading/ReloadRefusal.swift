import CRUDConfiguration
import CRUDModel

/// Why a reload changes nothing: lines for the log, and the error for whoever asked for it.
struct ReloadRefusal: Error {
    let lines: [String]
    let error: CRUDError

    /// How many of the errors the message has; the log has them all.
    private static let maximumReported = 10
    /// How many it gets as lines of their own.
    private static let maximumLines = 1000

    /// - Parameter diagnostics: at least one.
    init(_ diagnostics: [ConfigurationDiagnostic]) {
        lines = diagnostics.map(\.description)
        let omitted = diagnostics.count - Self.maximumReported
        let reported = lines.prefix(Self.maximumReported).joined(separator: "; ")
        let first = diagnostics.first
        let isOfSystem = diagnostics.allSatisfy { $0.kind == .system }
        error = CRUDError(
            isOfSystem ? .unavailable : .invalidConfiguration,
            omitted > 0 ? "\(reported); and \(omitted) more, see the daemon's log" : reported,
            details: .init(
                file: first?.file, line: first?.line, column: first?.column,
                errors: lines.count > 1 ? Array(lines.prefix(Self.maximumLines)) : nil))
    }

    /// What prevents it, where that is not the configuration.
    init(_ error: CRUDError) {
        lines = [error.message]
        self.error = error
    }

    /// Something other than the configuration prevents it.
    init(unavailable message: String) {
        lines = [message]
        error = CRUDError(.unavailable, message)
    }
}
