# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # Tables of all that stayed, of which the findings are the largest: by request, line, class, and loaded or
      # compiled code.
      #
      # @api private
      class Tables
        ROWS = 50

        def initialize(owners, loading, holders)
          @owners = owners
          @loading = loading
          @holders = holders
        end

        # @return [Hash{Symbol => Object}]
        def to_h
          { requests: requests, lines: lines, classes: classes, inline_caches: caches, loaded: loaded,
            compiled: compiled }
        end

        private

        def all = @all ||= @owners.values.flatten
        def objects = @owners.fetch(nil, [])

        # By request, the objects that are still alive, by sort.
        def requests
          caches, others = (all - objects).partition(&:cache?)
          (all.first&.objects || []).each_index.map do |window|
            { request: window + 1,
              objects: total(objects, :objects, window), bytes: total(objects, :bytes, window),
              code_bytes: total(others, :bytes, window), inline_caches: total(caches, :objects, window),
              files: files(window), compiled: @loading.compiled.count { |one| one.windows.include?(window) } }
          end
        end

        def files(window) = @loading.loads.sum { |load| load.window == window ? load.files.size : 0 }

        def total(groups, what, window) = groups.sum { |group| group.public_send(what)[window] }

        def lines
          top(objects) { |group| [group.place, group.file, group.line] }.map do |(place, file, line), groups|
            { place: place.join(":"), allocated: "#{file}:#{line}", classes: groups.map { |one| one.name.to_s }.uniq,
              held_by: groups.flat_map { |group| @holders.fetch(group, {}).keys.map(&:name) }.uniq.first(3),
              growing: groups.any?(&:grows?), **sums(groups) }
          end
        end

        def classes
          top(objects) { |group| group.name.to_s }.map { |name, groups| { class: name, **sums(groups) } }
        end

        def caches
          top(all.select(&:cache?)) { |group| [group.file, group.name] }.map do |(file, name), groups|
            { file: file, cache: name.to_s, **sums(groups) }
          end
        end

        def sums(groups) = { objects: groups.sum { |one| one.objects.sum }, bytes: bytes(groups) }
        def bytes(groups) = groups.sum { |one| one.bytes.sum }
        def top(groups, &key) = groups.group_by(&key).sort_by { |_, all| -bytes(all) }.first(ROWS)

        def loaded
          @loading.loads.map do |load|
            { path: load.path, request: load.window + 1, constant: load.constant, place: load.place&.join(":"),
              files: load.files.size, bytes: bytes(@owners.fetch(load, [])) }.compact
          end
        end

        def compiled
          @loading.compiled.map do |one|
            { path: one.path, line: one.line, place: one.place&.join(":"), requests: one.windows.map { |at| at + 1 },
              bytes: bytes(@owners.fetch(one, [])) }.compact
          end
        end
      end
    end
  end
end
