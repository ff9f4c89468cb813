package import CRUDJSON

/// How a query was executed, for whoever wonders.
package struct QueryPlan: Sendable {
    /// Who has brought the records into their order.
    enum Sort: String {
        /// Nobody: they came by id.
        case id
        case storage, host
    }

    /// The property path whose index has served; nil: none has.
    var index: String?
    var sort: Sort
    /// How many records were looked at.
    var scanned: Int

    package func write(to writer: inout JSONWriter) {
        writer.object { plan in
            plan.key("index")
            if let index { plan.string(index) } else { plan.null() }
            plan.member("sort", sort.rawValue)
            plan.member("scanned", scanned)
        }
    }
}
