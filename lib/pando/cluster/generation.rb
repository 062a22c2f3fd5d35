# frozen_string_literal: true

require "pando/cluster/throttling/restart_throttle"
require "pando/events"

module Pando
  module Cluster
    # One mold and all that was forked from it, on its way:
    #
    #   booting -> ready -> canary -> rolling -> current -> kept -> retired
    #        \________ any failure ________> discarded
    #        \________ a lost thread ______> refused
    #
    # It is kept while its successor is watched, and current again if that fails.
    #
    # @api private
    class Generation
      extend Serializable

      NEXT = {
        booting: %i[ready discarded refused retired],
        ready: %i[canary discarded refused retired],
        canary: %i[rolling current discarded refused retired],
        rolling: %i[current discarded retired],
        current: %i[kept retired discarded],
        kept: %i[current retired]
      }.freeze
      PURPOSES = %i[boot refork heal reload reboot].freeze
      # Of its record, with a mold and without. An older Pando would wait for ever for a mold that has been let go: it
      # does not know the other word, and has a mold forked as after the death of one.
      WORDS = %w[generation generation_without_mold].freeze

      # Stands for a source that has ended since, after an upgrade.
      Former = Struct.new(:pid, :slot, :excluded_as_source) do
        def declined_while_busy? = false
      end

      serialize state: NEXT.keys, reason: :text, began_at: :number, unfit: :integer, observed: :flag, released: :flag,
            backoff: Throttling::RestartThrottle

      attr_reader :number, :purpose, :state, :source, :began_at
      # Between failed attempts to fork from its mold; a RestartThrottle.
      attr_reader :backoff
      attr_accessor :mold
      # Children whose self-check did not come back.
      attr_reader :unfit
      # Why its first worker need not prove itself; nil: it must.
      attr_accessor :untried
      # Why nothing is known yet of how it does with clients' requests; nil: its canary has served enough of them.
      attr_accessor :unproven

      # Why it came to nothing.
      attr_reader :reason

      # @param purpose [:boot, :refork, :heal, :reload, :reboot] a heal replaces a dead mold, and no worker that lives;
      #   a reboot is a clean image of the release that serves
      # @param source [Child, nil] the worker that is promoted
      # @param told [Boolean] of its beginning
      def initialize(number, purpose, source, told: false)
        @number = number
        @purpose = purpose
        @source = source
        @state = :booting
        @backoff = Throttling::RestartThrottle.new({ role: :worker, generation: number }, limit: Throttling::Backoff::LIMIT, free: 0)
        @began_at = Sys.now
        @unfit = 0
        @observed = @released = false
        tell unless told
      end

      # @param record [Upgrade::Record]
      # @param roster [Roster] of the living
      def self.taken_up(record, roster)
        source = Former.new(record.integer(:source_pid), record.integer(:source_slot)) if record.key?(:source_pid)
        source = roster.by_pid(source.pid) || source if source
        new(record.integer(:number), record.choice(:purpose, PURPOSES), source, told: true).tap do |generation|
          generation.mold = roster[record.integer(:mold)] if record.key?(:mold)
          generation.take_up(record)
        end
      end

      def to_state(state)
        purpose = reboot? ? :reload : self.purpose # an older Pando does not know the other one
        state.add(WORDS[released? ? 1 : 0], number: number, purpose: purpose, mold: mold&.seat,
                                            source_pid: source&.pid, source_slot: source&.slot, **serialized_fields)
      end

      NEXT.each_key { |state| define_method(:"#{state}?") { @state == state } }

      def heal? = purpose == :heal
      def reboot? = purpose == :reboot

      # @return [Boolean] it is to take the place of one that serves
      def successor? = %i[refork reload reboot].include?(purpose)

      # @return [Boolean] it serves, or has served, in all slots
      def established? = %i[current kept].include?(state)

      # @return [Float] seconds since it was begun
      def age = (Sys.now - began_at).round(3)

      # Its mold has been told to look at what its first worker writes to, see HotSets.
      def observed! = @observed = true
      def observed? = @observed

      # @return [Integer] how often that has happened
      def count_unfit = @unfit += 1

      # Its mold is ready: to its canary.
      def go_on = enter(:canary)

      # Another worker than before is to fork its mold.
      def fork_from(source, mold)
        @source = source
        @mold = mold
      end

      # It waits for others when its mold is ready, until it is told to go on.
      def hold = @held = true
      def held? = !!@held

      # @return [Boolean] its mold can be told to fork
      def forks? = !mold.nil? && mold.ready?

      # Its mold goes; one of its workers will be forked into another one when that is wanted.
      # @param reason [String]
      def release_mold(reason)
        Events.emit("mold.leaving", generation: number, pid: mold.pid, reason: reason)
        end_mold("released")
        @mold = nil
        @released = true
      end

      # @return [Boolean]
      def released? = @released

      # @param reason [String] one of Generations::ENDS
      def end_mold(reason)
        return if mold.nil? || mold.gone?

        mold.ready? && mold.order(Message.new(:leave)) ? mold.leave(reason, Sys.now + 5) : mold.kill(reason)
      end

      def enter(state, reason: nil, **details)
        possible = NEXT.fetch(@state, [])
        raise ArgumentError, "generation #{number}: from #{@state} to #{state}" unless possible.include?(state)

        @state = state
        @reason = reason
        tell(reason: reason, **details)
      end

      # All workers come from it.
      def become_current
        enter(:current, seconds: age)
        Events.emit("refork.finished", generation: number, pid: mold.pid, seconds: age) if purpose == :refork
      end

      private

      def tell(**details)
        from = source && { source: source.pid, source_slot: source.slot }
        Events.emit("generation.#{state}", generation: number, purpose: purpose, pid: mold&.pid, **from.to_h,
                                           **details.compact)
      end
    end
  end
end
