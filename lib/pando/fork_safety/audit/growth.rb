# frozen_string_literal: true

require "pando/fork_safety/audit/inventory"
require "pando/fork_safety/audit/sites"
require "pando/fork_safety/finding"

module Pando
  module ForkSafety
    module Audit
      # Watches how many descriptors a process has. A mold allocates little, so it rarely collects garbage.
      # What is opened in it and forgotten stays open, and every later worker inherits it.
      #
      # It counts once a second. Only if the number rises again and again does it look at what is new.
      class Growth
        # Seconds between two counts, and how many counts to look back.
        PERIOD = 1.0
        WINDOW = 6
        # A steady leak: this many more than at the start of the window, in this many steps.
        STEADY = 4
        STEPS = 4
        # A slow or irregular leak: this many more than at first.
        SLOW = 100
        # The most reports. It reports again when the growth has doubled.
        REPORTS = 12
        private_constant :WINDOW, :STEADY, :STEPS, :SLOW, :REPORTS

        def initialize(own: [], clock: Sys.method(:now), count: Sys.method(:descriptor_count))
          @own = own.map(&:fileno)
          @clock = clock
          @count = count
          @next_at = clock.call
          @counts = []
          @known = Sys.descriptors.to_h { |number, target| [[number, target], true] }
          @first = @known.size
          @reports = 0
          @told = 0
        end

        # Call it now and then; it does nothing before its time.
        def check
          now = @clock.call
          return if now < @next_at || @reports >= REPORTS

          @next_at = now + PERIOD
          @counts = [*@counts.last(WINDOW), @count.call]
          added = @counts.last - @first
          tell(added) if (steady? || added >= SLOW) && added >= @told * 2
        rescue SystemCallError
          nil # /proc cannot be read now
        end

        private

        def steady?
          steps = @counts.each_cons(2).count { |before, after| after > before }
          falls = @counts.each_cons(2).count { |before, after| after < before }
          steps >= STEPS && falls <= 1 && @counts.last - @counts.first >= STEADY
        end

        # @param more [Integer] descriptors than at first
        def tell(more)
          inventory = Inventory.new(own: @own)
          added = inventory.descriptors.reject { |one| @known[[one.number, one.target]] || one.owner != :native }
          inventory.attribute(added)
          group, of_kind = added.group_by { |one| [one.label, one.location] }.max_by { |_, list| list.size }
          return unless group

          @reports += 1
          @told = more
          finding(group, of_kind, added.size)
        end

        def finding(group, of_kind, added)
          what, location = group
          message = "#{added} more descriptors than at first, #{of_kind.size} of them of one kind: #{what}"
          Finding.new(:growing_descriptors, subject: what, location: location, message: message,
                                            details: { added: added, alike: of_kind.size, total: @counts.last,
                                                       io: of_kind.first.io&.class&.name }.compact)
        end
      end
    end
  end
end
