/// Where objects are in a list: few are compared, for many there is a table.
struct ObjectIndex<Object: AnyObject> {
    private(set) var objects: [Object] = []
    private var positions: [ObjectIdentifier: Int] = [:]

    /// How many are compared.
    private static var few: Int { 8 }

    subscript(_ object: Object) -> Int? {
        if objects.count <= Self.few { return objects.firstIndex { $0 === object } }
        return positions[ObjectIdentifier(object)]
    }

    /// Adds an object that is not in the list.
    mutating func append(_ object: Object) {
        objects.append(object)
        if positions.isEmpty { return fill() }
        positions[ObjectIdentifier(object)] = objects.count - 1
    }

    mutating func replace(with objects: some Sequence<Object>) {
        self.objects.removeAll(keepingCapacity: true)
        self.objects.append(contentsOf: objects)
        fill()
    }

    /// Fills the table, if there are many.
    private mutating func fill() {
        positions.removeAll()
        guard objects.count > Self.few else { return }
        for (position, object) in objects.enumerated() { positions[ObjectIdentifier(object)] = position }
    }
}
