# frozen_string_literal: true

require "pando/doctor/lazy_state/advice"
require "pando/doctor/lazy_state/thresholds"

module Pando
  module Doctor
    module LazyState
      # Findings about objects: what the first request built and kept, and what each request adds.
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

        # What grows under one name is one finding, at the line that adds most.
        def growing
          leaking.group_by { |group| holder_of([group])&.name || group.place }.values.map do |groups|
            groups = groups.sort_by { |group| -group.bytes_per_request }
            finding(:growth_per_request, groups.first.place, groups, bytes: groups.sum(&:bytes_per_request),
                                                                     objects: groups.sum(&:objects_per_request))
          end
        end

        # A line that leaves files open is found by its descriptors.
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

        # A thread is no memory to be shared: it lives in one process.
        def once = @groups.select { |group| group.lazy? && group.name != "Thread" }

        def finding(kind, place, groups, bytes:, objects:, severity: nil)
          groups = groups.sort_by { |group| -group.bytes.sum }
          holder = holder_of(groups)
          details = { bytes: bytes, objects: objects, held_by: holder&.name, classes: classes(groups),
                      lines: lines(groups) }
          ForkSafety::Finding.new(kind, severity: severity, location: place.join(":"),
                                        subject: holder&.name || subject(groups.first),
                                        message: message(kind, groups, bytes, objects, holder),
                                        advice: Advice.for(kind, groups.first.name, holder), details: details.compact)
        end

        def subject(group) = "#{group.name} of #{File.basename(group.file)}"

        def message(kind, groups, bytes, objects, holder)
          what = "#{Thresholds.count(objects, "object")} (#{Thresholds.size(bytes)}; " \
                 "#{groups.map { |group| group.name.to_s }.uniq.first(3).join(", ")})"
          held = ", held by #{holder.name}" if holder
          "#{kind == :lazy_memory ? "The first request built and kept" : "Each request adds"} #{what}#{held}."
        end

        # The name by which most of them are kept.
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
    end
  end
end
