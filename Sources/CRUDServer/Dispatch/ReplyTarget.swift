import CRUDJSON
import CRUDPluginHost

/// Where the response to a request goes: a frame of its own, or its place in the answer to a batch array.
enum ReplyTarget {
    case frame
    case array(ArrayExecution)

    /// Whether a request may start now as far as the elements before it in its array are concerned.
    ///
    /// - Parameter backend: nil: several, or none.
    func admits(_ kind: RequestKind, on backend: Backend?) -> Bool {
        switch self {
        case .frame: true
        case .array(let array): array.underWay == 0 || (kind == .write && backend != nil && array.writingTo === backend)
        }
    }

    /// Whether the elements before a request in its array have to be carried out first, whatever the request is.
    var isBlocked: Bool {
        switch self {
        case .frame: false
        case .array(let array): array.underWay > 0 && array.writingTo == nil
        }
    }

    /// How long the request is that is being carried out: its frame, or its element of the array.
    func size(of text: Span<UInt8>) -> Int {
        switch self {
        case .frame: text.count
        case .array(let array): array.elements[array.next].count
        }
    }
}
