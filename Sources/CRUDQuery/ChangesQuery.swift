package import CRUDModel

/// Which changes of a collection are asked for, and how they are shown.
package struct ChangesQuery: Sendable {
    /// Records for which it is not true are shown as such.
    package var filter: Filter?
    /// How ids begin, in UTF-8.
    package var prefix: [UInt8] = []
    /// Which part of the items is wanted; nil: the whole.
    package var fields: FieldProjection?
    /// Whether items are wanted at all.
    package var withItems = true
    /// The most changes of a page.
    package var limit = DefaultLimits.pageRecords

    package init() {}
}
