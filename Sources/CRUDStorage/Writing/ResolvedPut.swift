import CRUDJSON
import CRUDModel
import CRUDPluginHost

/// A put whose item a transformation has made from the current record: what to store, and on what condition.
struct ResolvedPut {
    var item: ByteArena.Place
    var keys: StoredKeys
    var precondition: Mutation.Precondition
    var expiresAt: Int64
}

extension MutationBatch {
    /// Makes an item from the current one, and keeps it.
    ///
    /// - Parameter record: the current one; nil where there is none.
    func resolve(
        _ mutation: Mutation, by transformation: any ItemTransformation, of record: CurrentRecordReader.Record?,
        at position: Int
    ) throws(CRUDError) -> ResolvedPut {
        // It is not long, or nothing else has helped.
        var work = Work()
        return resolve(mutation, as: try transformation.transform(record?.item, &work), of: record, at: position)
    }

    /// Keeps an item that the mutation's transformation has made of the current one.
    ///
    /// - Parameter record: the current one; nil where there is none.
    func resolve(
        _ mutation: Mutation, as item: TransformedItem, of record: CurrentRecordReader.Record?, at position: Int
    ) -> ResolvedPut {
        let (item, keys) = keep(item, at: position)
        let kept = mutation.transformation?.keepsExpiry == true ? record?.expiresAt : nil
        return ResolvedPut(
            item: item, keys: keys, precondition: record.map { .revision(store($0.revision.span)) } ?? .absent,
            expiresAt: kept ?? mutation.expiresAt)
    }

    /// A record as a put leaves it.
    ///
    /// - Parameter resolved: what a transformation has made of the put; nil: it says itself what it stores.
    func record(after put: Mutation, _ resolved: ResolvedPut?) -> CurrentRecordReader.Record {
        CurrentRecordReader.Record(
            item: Array(arena.bytes(resolved?.item ?? put.item)), revision: Array(arena.bytes(put.revision)),
            expiresAt: resolved?.expiresAt ?? put.expiresAt)
    }
}
