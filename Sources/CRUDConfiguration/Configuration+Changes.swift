package import CRUDModel

extension Configuration {
    /// The differences to another configuration, one line each, for an administrator.
    ///
    /// Backends are left out, because what happens to them depends on their plugins too
    /// (``BackendConfiguration/changedKeys(in:)``); so are `socket`, `state_directory` and `loops`, which a running
    /// daemon cannot change.
    package func changes(to new: Configuration) -> [String] {
        var changes: [String] = []
        if pluginDirectories != new.pluginDirectories {
            changes.append("plugins.directories: now \(new.pluginDirectories.joined(separator: ", "))")
        }
        changes += collections.changes(to: new.collections)
        if access.rules != new.access.rules {
            let what = access.rules == nil ? "added" : new.access.rules == nil ? "removed" : "changed"
            changes.append("access: \(what)")
        }
        if cacheBytes != new.cacheBytes {
            let sizes = [cacheBytes, new.cacheBytes].map(Quantity.size.text)
            changes.append("cache.bytes: from \(sizes[0]) to \(sizes[1])")
        }
        if busyPoll != new.busyPoll {
            let times = [busyPoll, new.busyPoll].map { Quantity.duration.text($0.microseconds) }
            changes.append("busy_poll: from \(times[0]) to \(times[1])")
        }
        changes += limits.changes(to: new.limits)
        if logLevel != new.logLevel {
            changes.append("log.level: from \(logLevel.rawValue) to \(new.logLevel.rawValue)")
        }
        if slowRequest != new.slowRequest {
            let times = [slowRequest, new.slowRequest].map { Quantity.duration.text($0.microseconds) }
            changes.append("log.slow: from \(times[0]) to \(times[1])")
        }
        return changes
    }
}

extension BackendConfiguration {
    /// The keys whose values differ in another definition.
    package func changedKeys(in new: BackendConfiguration) -> [String] {
        var keys: [String] = []
        if implementation != new.implementation {
            if case .command = new.implementation { keys.append("command") } else { keys.append("plugin") }
        }
        if isolation != new.isolation { keys.append("isolation") }
        if limits != new.limits { keys.append("limits") }
        if sha256 != new.sha256 { keys.append("sha256") }
        if options != new.options { keys.append("options") }
        return keys
    }
}

extension CollectionRules {
    /// Whether every collection is stored alike by these rules and by the other ones.
    package func storesLike(_ other: CollectionRules) -> Bool {
        rules.elementsEqual(other.rules) { $0.pattern == $1.pattern && $0.stores(like: $1) }
    }

    fileprivate func changes(to new: CollectionRules) -> [String] {
        var changes: [String] = []
        let newRules = new.byPattern
        for rule in rules where newRules[rule.key] == nil {
            changes.append("collection \(rule.pattern.text): removed")
        }
        let oldRules = byPattern
        for rule in new.rules {
            if let old = oldRules[rule.key] {
                let details = old.changes(to: rule)
                if !details.isEmpty {
                    changes.append("collection \(rule.pattern.text): \(details.joined(separator: ", "))")
                }
            } else {
                changes.append(
                    "collection \(rule.pattern.text): added, in backend \(rule.backend) as \(rule.format.rawValue)")
            }
        }
        if changes.isEmpty, !rules.elementsEqual(new.rules, by: { $0.pattern == $1.pattern }) {
            changes.append("collections: in another order")
        }
        return changes
    }

    private var byPattern: [[UInt8]: CollectionRule] {
        Dictionary(rules.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
    }
}

extension CollectionRule {
    /// The pattern as a dictionary's key, compared by code point and not by Unicode's equivalence.
    fileprivate var key: [UInt8] { Array(pattern.text.utf8) }

    fileprivate func changes(to new: CollectionRule) -> [String] {
        var changes: [String] = []
        if backend != new.backend { changes.append("from backend \(backend) to backend \(new.backend)") }
        if format != new.format { changes.append("from format \(format.rawValue) to format \(new.format.rawValue)") }
        if indexes != new.indexes { changes.append("indexes changed") }
        switch (self.changes, new.changes) {
        case (nil, nil): break
        case (nil, .some): changes.append("changes are remembered")
        case (.some, nil): changes.append("changes are no longer remembered")
        case (.some(let old), .some(let new)) where old != new:
            let times = [old, new].map { Quantity.duration.text($0.retention.microseconds) }
            changes.append("changes.retention: from \(times[0]) to \(times[1])")
        case (.some, .some): break
        }
        return changes
    }
}

extension Configuration.Limits {
    fileprivate func changes(to new: Self) -> [String] {
        LimitDefinitions.all.compactMap { limit in
            let (old, new) = (self[keyPath: limit.value], new[keyPath: limit.value])
            let texts = [old, new].map(limit.kind.text)
            return old == new ? nil : "limits.\(limit.key.rawValue): from \(texts[0]) to \(texts[1])"
        }
    }
}
