/// What has come of work, for a request that waited for it.
package enum WorkResult {
    /// Its read is the one at this position.
    case read(ReadBatch, at: Int)
    /// Its mutations are those in this range.
    case written(MutationBatch, Range<Int>)
    case found(SearchTask)
    case changes(ChangesTask)
    case size(SizeTask)
    case deleted(BulkDelete)
    case dropped(DropRequest)
    /// There is nothing to be told but that it is done.
    case done

    /// This is the only place that asks what an item is.
    package init(of item: WorkItem, _ range: Range<Int>) {
        self =
            switch item {
            case let batch as ReadBatch: .read(batch, at: range.lowerBound)
            case let batch as MutationBatch: .written(batch, range)
            case let task as SearchTask: .found(task)
            case let task as ChangesTask: .changes(task)
            case let task as SizeTask: .size(task)
            case let task as BulkDelete: .deleted(task)
            case let request as DropRequest: .dropped(request)
            default: .done
            }
    }
}
