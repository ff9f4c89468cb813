import CRUDClient
import CRUDJSON
import CRUDWire

/// The form in which an error is printed on standard error.
struct ErrorReport {
    private let error: CRUDError

    init(_ error: CRUDError) {
        self.error = error
    }

    func print(asJSON: Bool) {
        StandardError.write(text(asJSON: asJSON))
    }

    func text(asJSON: Bool) -> String {
        guard asJSON else {
            let lines = error.details.errors ?? [error.message]
            return lines.map { "crudctl: \(error.code.name): \($0.withVisibleControls)\n" }.joined()
        }
        var writer = JSONWriter()
        error.write(to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}

extension CRUDError {
    /// The exit status for scripts, one of sysexits.h.
    var exitStatus: Int32 {
        switch code {
        case .outcomeUnknown: 74
        case _ where cause is DeadlineExceeded: 75
        case .parseError, .invalidRequest, .invalidParams, .invalidQuery, .unsupported, .limitExceeded, .methodNotFound,
            .cursorExpired:
            65
        case .recordNotFound, .collectionNotFound: 66
        case .unavailable: 69
        case .recordExists: 73
        case .revisionMismatch, .noSpace: 75
        case .permissionDenied: 77
        case .invalidConfiguration: 78
        default: 70
        }
    }
}
