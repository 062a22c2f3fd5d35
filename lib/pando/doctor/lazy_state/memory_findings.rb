# frozen_string_literal: true

require "pando/doctor/lazy_state/result"

module Pando
  module Doctor
    module LazyState
      # Findings about objects: those that the first request built and kept, and those that each request adds.
      #
      # @api private
      class MemoryFindings
        SHOWN = 5 # classes and lines in the details of a finding

        # @param groups [Array<Group>]
        # @param holders [Hash{Group => Hash{Holders::Holder => Integer}}]
        def initialize(groups, holders)
          @groups = groups
          @holders = holders
        end

        # @return [Array<ForkSafety::Finding>]
        def findings = growing + lazy

        private

        # All growth under one name is one finding, at the line that adds most.
        def growing
          leaking.group_by { |group| holder_of([group])&.name || group.place }.values.map do |groups|
            groups = groups.sort_by { |group| -group.bytes_per_request }
            finding(:growth_per_request, groups.first.place, groups, bytes: groups.sum(&:bytes_per_request),
                                                                     objects: groups.sum(&:objects_per_request))
          end
        end

        # A line that leaks files is a finding of the check for growing descriptors.
        def leaking
          growing = @groups.select(&:grows?)
          files = growing.select(&:descriptors?).map(&:place)
          growing.reject { |group| files.include?(group.place) }
        end

        def lazy
          once.group_by(&:place).filter_map do |place, groups|
            bytes = groups.sum(&:lasting_bytes)
            next if bytes < Thresholds::NOTE

            finding(:lazy_memory, place, groups, severity: Thresholds.severity(bytes), bytes: bytes,
                                                 objects: groups.sum(&:lasting_objects))
          end
        end

        # Threads cannot be shared between processes, and nobody can fill the VM's tables at boot.
        def once = @groups.select { |group| group.lazy? && group.name != "Thread" && !group.vm_table? }

        def finding(kind, place, groups, bytes:, objects:, severity: nil)
          groups = groups.sort_by { |group| -group.bytes.sum }
          holder = holder_of(groups)
          details = { bytes: bytes, objects: objects, held_by: holder&.name, classes: classes(groups),
                      lines: lines(groups) }
          ForkSafety::Finding.new(kind, severity: severity, location: place.join(":"),
                                        subject: holder&.name || subject(groups.first),
                                        message: message(kind, groups, bytes, objects, holder),
                                        advice: MemoryAdvice.for(kind, groups.first.name, holder),
                                        details: details.compact)
        end

        def subject(group) = "#{group.name} of #{File.basename(group.file)}"

        def message(kind, groups, bytes, objects, holder)
          what = "#{Thresholds.count(objects, "object")} (#{Thresholds.size(bytes)}; " \
                 "#{groups.map { |group| group.name.to_s }.uniq.first(3).join(", ")})"
          held = ", held by #{holder.name}" if holder
          "#{kind == :lazy_memory ? "The first request built and kept" : "Each request adds"} #{what}#{held}."
        end

        # @return [Holders::Holder, nil] that keeps at least half of the objects
        def holder_of(groups)
          counts = groups.each_with_object({}.compare_by_identity) do |group, all|
            @holders.fetch(group, {}).each { |holder, count| all[holder] = all.fetch(holder, 0) + count }
          end
          holder, count = counts.max_by { |one, reached| [reached, -one.name.size] }
          holder if holder && count * 2 >= groups.sum { |group| group.objects.sum }
        end

        def classes(groups)
          groups.group_by { |group| group.name.to_s }.first(SHOWN).map do |name, all|
            { class: name, objects: all.sum { |group| group.objects.sum }, bytes: all.sum { |group| group.bytes.sum } }
          end
        end

        def lines(groups) = groups.map { |group| "#{group.file}:#{group.line}" }.uniq.first(SHOWN)
      end

      # Findings about an Array, Hash or String that has grown without new objects, like a count by number. If there are
      # new objects, their line is the finding.
      #
      # @api private
      class ContainerFindings
        BYTES = 16 # of an entry, roughly: 8 in an Array, 24 in a Hash

        # @param growths [Array<Containers::Growth>]
        # @param holders [Hash{Containers::Growth => Hash{Holders::Holder => Integer}}]
        # @param groups [Array<Group>] of new objects
        def initialize(growths, holders, groups)
          @growths = growths
          @holders = holders
          @groups = groups
        end

        # @return [Array<ForkSafety::Finding>]
        def findings
          reported = @groups.select { |group| group.grows? || group.lazy? }
                            .flat_map { |group| @holders.fetch(group, {}).keys.map(&:name) }
          @growths.filter_map do |growth|
            holder = @holders.fetch(growth, {}).keys.min_by { |one| one.name.size }
            finding(growth, holder) if holder && !reported.include?(holder.name)
          end
        end

        private

        def finding(growth, holder)
          bytes = growth.gain * (holder.object.is_a?(String) ? 1 : BYTES)
          return build(:growth_per_request, growth, holder, bytes) if growth.steady?

          build(:lazy_memory, growth, holder, bytes) if bytes >= Thresholds::NOTE
        end

        def build(kind, growth, holder, bytes)
          ForkSafety::Finding.new(
            kind, severity: (Thresholds.severity(bytes) if kind == :lazy_memory), location: holder.place&.join(":"),
                  subject: holder.name, message: message(kind, holder, growth.gain),
                  advice: MemoryAdvice.for(kind, nil, holder),
                  details: { bytes: bytes, entries: growth.gain, before: growth.before, held_by: holder.name }
          )
        end

        def message(kind, holder, entries)
          noun = holder.object.is_a?(String) ? "byte" : "entry"
          what = Thresholds.count(entries, noun).sub("entrys", "entries")
          "#{kind == :lazy_memory ? "The first request added" : "Each request adds"} #{what} to #{holder.name}."
        end
      end

      # The change that moves the work to the boot.
      #
      # @api private
      module MemoryAdvice
        # @param kind [Symbol] of the finding
        # @param name [String, Symbol, nil] the class of most of the objects
        # @param holder [Holders::Holder, nil]
        # @return [String, nil] nil: the kind's default
        def self.for(kind, name, holder)
          kind == :growth_per_request ? growth(holder) : memory(name, holder)
        end

        def self.growth(holder)
          return unless holder

          "Bound #{holder.name} (a fixed number of entries; drop the oldest), or let requests release what they build."
        end
        private_class_method :growth

        def self.memory(name, holder)
          return "Make the Regexp a constant, so that it is compiled at boot." if name == "Regexp"
          return "Build it at boot: a constant, or call at boot what the line calls." unless holder
          return "Fill #{holder.name} at boot, where the constant is written." if holder.constant

          "Fill #{holder.name} at boot: call at the end of the boot (config.ru, an initializer, " \
            "eager_load!) what the line calls, or make it a constant."
        end
        private_class_method :memory
      end
    end
  end
end
