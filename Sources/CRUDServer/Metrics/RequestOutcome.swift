import CRUDModel

/// How a request has ended: well, or with an error of the protocol. Its index is that of a counter.
struct RequestOutcome: Equatable {
    let index: Int

    static let ok = RequestOutcome(index: 0)

    private init(index: Int) {
        self.index = index
    }

    init(_ code: CRUDError.Code) {
        let codes = CRUDError.Code.all
        let known = codes.firstIndex { $0.code == code } ?? codes.firstIndex { $0.code == .internalError } ?? 0
        index = 1 + known
    }

    /// `ok`, and the names of the errors.
    static let names = ["ok"] + CRUDError.Code.all.map(\.name)

    var name: String { Self.names[index] }
}
