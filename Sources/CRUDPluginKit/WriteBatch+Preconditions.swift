import CRUDPluginABI

extension WriteBatch {
    /// Whether a mutation may take effect on what is there. If not, this is its outcome.
    ///
    /// - Parameters:
    ///   - mutation: the one at `position`.
    ///   - current: revision and expiry of the record that is there; nil: there is none. One that has expired counts as
    ///     none.
    public func permits(
        _ mutation: Mutation<Collection>, at position: Int,
        current: (revision: UnsafeRawBufferPointer, expiresAt: Int64)?
    ) -> Bool {
        guard supports(mutation) else { return refused(position, .unsupported) }
        let revision = current.flatMap { call.hasExpired($0.expiresAt) ? nil : $0.revision }
        // By the numbers of the contract: this is generic, and each comparison of the values themselves is a call.
        let precondition = Int(mutation.precondition.rawValue)
        guard let revision else {
            let isMet = precondition == CRUDD_IF_ANY || precondition == CRUDD_IF_ABSENT
            return isMet && Int(mutation.kind.rawValue) != CRUDD_REMOVE || refused(position, .notFound)
        }
        switch precondition {
        case CRUDD_IF_ABSENT: return refused(position, .exists)
        case CRUDD_IF_REVISION:
            return revision.elementsEqual(mutation.expected) || mismatched(position, current: revision)
        default: return true
        }
    }

    /// Whether kind and precondition of a mutation are known and fit together.
    private func supports(_ mutation: Mutation<Collection>) -> Bool {
        let precondition = Int(mutation.precondition.rawValue)
        guard precondition <= CRUDD_IF_REVISION else { return false }
        switch Int(mutation.kind.rawValue) {
        case CRUDD_PUT: return mutation.expiresAt == 0 || capabilities.contains(.expiry)
        case CRUDD_REMOVE: return true
        case CRUDD_CHECK: return isAtomic
        case CRUDD_SET_KEYS: return precondition == CRUDD_IF_REVISION && capabilities.contains(.indexes)
        default: return false
        }
    }
}
