# frozen_string_literal: true

require "pando/doctor/lazy_state/advice"
require "pando/doctor/lazy_state/thresholds"

module Pando
  module Doctor
    module LazyState
      # Findings about an Array, Hash or String that has grown without any new object in it, as a count by number
      # does. Where there are new objects their own line is the finding.
      #
      # @api private
      class ContainerFindings
        BYTES = 16 # an entry's, about: 8 in an Array, 24 in a Hash

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
          told = @groups.select { |group| group.grows? || group.lazy? }
                        .flat_map { |group| @holders.fetch(group, {}).keys.map(&:name) }
          @growths.filter_map do |growth|
            holder = @holders.fetch(growth, {}).keys.min_by { |one| one.name.size }
            finding(growth, holder) if holder && !told.include?(holder.name)
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
                  advice: Advice.for(kind, nil, holder),
                  details: { bytes: bytes, entries: growth.gain, before: growth.before, held_by: holder.name }
          )
        end

        def message(kind, holder, entries)
          noun = holder.object.is_a?(String) ? "byte" : "entry"
          what = Thresholds.count(entries, noun).sub("entrys", "entries")
          "#{kind == :lazy_memory ? "The first request added" : "Each request adds"} #{what} to #{holder.name}."
        end
      end
    end
  end
end
