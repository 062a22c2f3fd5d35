# frozen_string_literal: true

require "pando/cluster/restart_throttles"

module Pando
  module Cluster
    # One mold and all that was forked from it, and its state:
    #
    #   booting -> ready -> canary -> rolling -> current -> kept -> retired
    #        \________ any failure ________> discarded
    #        \________ a lost thread ______> refused
    #
    # It is kept while its successor is watched, and becomes current again if that fails. Owned by Generations.
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
      FAILURES = %i[discarded refused].freeze

      # What it does in each state.
      ACTIVITIES = { booting: "is booting", ready: "has booted and is not rolled out yet", canary: "is on trial",
                     rolling: "is rolling out" }.freeze
      private_constant :FAILURES, :ACTIVITIES

      # Stands for a source that has ended, after an upgrade.
      Former = Struct.new(:pid, :slot, :excluded_as_source) do
        def declined_while_busy? = false
      end

      serialize state: NEXT.keys, reason: :text, began_at: :number, unfit: :integer, observed: :flag, released: :flag,
                forked_within: :number, backoff: RestartThrottle

      attr_reader :number, :purpose, :state, :source, :began_at
      # Seconds that the worker which has forked its mold took for that; nil: no worker has.
      attr_reader :forked_within
      # Between failed attempts to fork from its mold.
      attr_reader :backoff
      attr_accessor :mold
      # Children whose self-check did not come back.
      attr_reader :unfit
      # Why its first worker need not prove itself; nil: it must.
      attr_accessor :untried
      # Why its canary has proved little; nil: it has served enough requests of clients.
      attr_accessor :unproven
      # Why it was discarded, refused or retired.
      attr_reader :reason

      # @param purpose [:boot, :refork, :heal, :reload, :reboot] a heal replaces a dead mold, and no living worker;
      #   a reboot boots the current release anew
      # @param source [Child, nil] the worker that is promoted
      # @param told [Boolean] whether an event has told of its beginning
      def initialize(number, purpose, source, told: false)
        @number = number
        @purpose = purpose
        @source = source
        @state = :booting
        @backoff = RestartThrottle.new({ role: :worker, generation: number }, limit: Backoff::LIMIT, free: 0)
        @began_at = @asked_at = Sys.now
        @unfit = 0
        @observed = @released = @served = false
        tell unless told
      end

      def self.taken_up(record, roster)
        source = Former.new(record.integer(:source_pid), record.integer(:source_slot)) if record.key?(:source_pid)
        source = roster.by_pid(source.pid) || source if source
        new(record.integer(:number), record.choice(:purpose, PURPOSES), source, told: true).tap do |generation|
          generation.mold = roster[record.integer(:mold)] if record.key?(:mold)
          generation.take_up(record)
        end
      end

      def to_state(state)
        state.add("generation", number: number, purpose: purpose, mold: mold&.seat,
                                source_pid: source&.pid, source_slot: source&.slot, **serialized_fields)
      end

      NEXT.each_key { |state| define_method(:"#{state}?") { @state == state } }

      def heal? = purpose == :heal

      def successor? = %i[refork reload reboot].include?(purpose)

      # Whether it serves in all slots, or is kept while its successor is watched.
      def established? = %i[current kept].include?(state)

      # Whether it ever served in all slots. Its mold may be lost at once, before anybody has looked at its state.
      def served? = @served || established?

      def age = (Sys.now - began_at).round(3)

      def occupation = "generation #{number} (#{purpose}) #{ACTIVITIES.fetch(state)}"

      # Its mold has been told to learn what its first worker writes to, see Generations::PrefaultOrders.
      def observed! = @observed = true
      def observed? = @observed

      # Its mold has been forked.
      def forked! = (@forked_within = Sys.now - @asked_at if source)

      def count_unfit = @unfit += 1

      def go_on = enter(:canary)

      # Another worker than before is to fork its mold.
      def fork_from(source, mold)
        @source = source
        @mold = mold
        @asked_at = Sys.now
      end

      # It waits for those of other pools when its mold is ready, until it is told to go on.
      def hold = @held = true
      def held? = !!@held

      def forks? = !mold.nil? && mold.ready?

      # Its mold leaves. When one is needed again, it is forked from one of the workers.
      def release_mold(reason)
        Events.emit("mold.leaving", generation: number, pid: mold.pid, reason: reason)
        end_mold("released")
        @mold = nil
        @released = true
      end

      def released? = @released

      def end_mold(reason)
        return if mold.nil? || mold.gone?

        mold.ready? && mold.order(Message.new(:leave)) ? mold.leave(reason, Sys.now + 5) : mold.kill(reason)
      end

      def enter(state, reason: nil, **details)
        possible = NEXT.fetch(@state, [])
        raise ArgumentError, "generation #{number}: from #{@state} to #{state}" unless possible.include?(state)

        @served = served?
        @state = state
        @reason = reason
        tell(reason: reason, **details)
        tell_of_refork("failed", reason: reason) if FAILURES.include?(state)
      end

      def become_current
        enter(:current, seconds: age)
        tell_of_refork("finished", pid: mold.pid)
      end

      private

      def tell_of_refork(end_of_it, **details)
        return unless purpose == :refork

        Events.emit("refork.#{end_of_it}", generation: number, **details, seconds: age)
      end

      def tell(**details)
        from = source && { source: source.pid, source_slot: source.slot }
        Events.emit("generation.#{state}", generation: number, purpose: purpose, pid: mold&.pid, **from.to_h,
                                           **details.compact)
      end
    end
  end
end
