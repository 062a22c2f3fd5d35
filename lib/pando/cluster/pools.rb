# frozen_string_literal: true

require "pando/cluster/pool"

module Pando
  module Cluster
    # The pools of a server, one for each kind of worker, in the order of the configuration. They are fixed at the
    # start. If there are several, each event carries the name of its pool. Owned by the monitor.
    class Pools
      # The definition of a pool, from the layer above.
      #
      #   payload  see Server::Payload; its name is the pool's
      #   policy   when to refork, and from which worker
      Plan = Struct.new(:payload, :policy, keyword_init: true) do
        def name = payload.name
      end

      include Brief
      include Enumerable

      # @yieldparam plan [Plan] @yieldparam roster [Roster, Roster::View] of its children @yieldparam number [Integer]
      def initialize(plans, roster, shutdown)
        @shutdown = shutdown
        @pools = plans.map.with_index do |plan, number|
          yield plan, (plans.one? ? roster : roster.of(number)), number
        end
        @outage = Outage.new(@shutdown)
        @waiting = []
        @started = false
      end

      def each(&block) = @pools.each(&block)
      def several? = @pools.size > 1
      def names = @pools.map(&:name)

      def of(child) = @pools.fetch(child.pool)

      def named(name) = find { |pool| pool.name == name }

      # Events in the block carry the pool's name.
      def about(pool, &block) = several? ? Events.about(pool: pool.name, &block) : yield

      # Tells ChildEvents of the child's pool what has happened to the child. Called by Inbox and Reaper.
      # @param news [Symbol] a method of ChildEvents
      def tell(child, news, *details, **more)
        pool = of(child)
        about(pool) { pool.child_events.public_send(news, child, *details, **more) }
      end

      # @param pools [Enumerable<Pool>] the pools to boot, each as soon as it can
      def boot(pools = self)
        @waiting = pools.reject do |pool|
          about(pool) { pool.boot } unless pool.waits?
        end
      end

      def workers = sum { |pool| pool.rollout.size }

      # @return [Hash{Symbol => Integer}] the wanted numbers of workers that serve requests and of nodes that do jobs;
      #   without a kind that the server does not have
      def sizes
        kinds = group_by { |pool| pool.options.jobs ? :nodes : :workers }
        kinds.slice(:workers, :nodes).transform_values { |pools| pools.sum { |pool| pool.rollout.size } }
      end

      def enforce(now) = each { |pool| about(pool) { pool.enforce(now) } }
      def postpone(seconds) = each { |pool| pool.postpone(seconds) }

      def reconcile(ending)
        boot(@waiting) if @waiting.any?
        proceed_with_release if @release
        (@pools - @waiting).each { |pool| about(pool) { pool.reconcile(ending) } }
        @started = true if serve?
        @outage.note_serving(select(&:serving?))
      end

      # Begins a new generation in each pool.
      def reload(command, listeners)
        return first.generations.reload(command, listeners) unless several?

        @release = Release.new(self, command, listeners).tap(&:begin)
      end

      # As in Generations, for all pools together.
      def fallback_ready? = all? { |pool| pool.generations.fallback_ready? }
      def watching? = any? { |pool| pool.generations.watching? }
      def end_watch(reason) = each { |pool| about(pool) { pool.generations.end_watch(reason) } }
      def occupation = filter_map { |pool| pool.generations.occupation }.max_by { |_, seconds| seconds.to_f }
      def remaining = filter_map { |pool| pool.generations.remaining }.max

      # A new release serves: its settings apply from now on.
      # @param renewal [#command, #policy, #policy_of] and what the payloads take from it
      def renew(renewal)
        each do |pool|
          policy = pool.equal?(first) ? renewal.policy : renewal.policy_of(pool.name)
          about(pool) { pool.renew(renewal, policy) }
        end
      end

      def deadline = map(&:deadline).min

      def due = (@pools - @waiting).filter_map(&:due).min

      def serve? = all? { |pool| pool.generations.current }

      def complete? = serve? && all? { |pool| pool.roster.ready_workers.size >= pool.rollout.size }

      # One pool has no ready worker, and a try to change that has failed. At the start the server stops, since its
      # operator wants to know at once. Later the other pools serve on, and this one tries again.
      # @return [Boolean] whether the server stops
      def give_up(pool, reason, detail)
        if @started && any?(&:serving?)
          @outage.report_once(pool) { Events.emit("pool.failing", reason: reason) }
          return false
        end
        named = several? ? "#{pool.name}: #{reason}" : reason
        return @outage.note_failure(named, detail, first.options.give_up_after) if pool.generations.proven?

        @shutdown.fail(named, detail)
        true
      end

      def summary
        return "#{first.summary} workers serve" unless several?

        "#{map { |pool| "#{pool.name}: #{pool.summary}" }.join(", ")} workers serve"
      end

      def to_state(state)
        each do |pool|
          state.add("pool", name: pool.name)
          pool.to_state(state.part(pool.number))
        end
      end

      # A pool that is new in the configuration begins to boot, see Upgrade::Resumption.
      def from_state(state)
        @started = true
        each { |pool| state.part_of(pool.name)&.then { |part| pool.from_state(part) } }
      end

      # The time in which no worker serves. It is reported once, and stops the server after `give_up_after` seconds, if
      # that is set. The number of tries does not count. Owned by Pools, in the monitor.
      class Outage
        def initialize(shutdown)
          @shutdown = shutdown
          @served_at = Sys.now
          @told = []
        end

        def note_serving(serving)
          return if serving.empty?

          @served_at = Sys.now
          @begun = false
          @told -= serving
        end

        # A pool without workers is reported once, until one serves in it again.
        def report_once(pool)
          yield unless @told.include?(pool)
          @told |= [pool]
        end

        # A try to start a worker has failed, and no worker serves.
        # @param limit [Float, nil] seconds; nil: the server never stops for this
        # @return [Boolean] whether the server stops
        def note_failure(reason, detail, limit)
          seconds = Sys.now - @served_at
          left = limit && [limit - seconds, 0].max.round(1)
          Events.emit("server.failing", reason: reason, **{ seconds: left }.compact) unless @begun
          @begun = true
          return false unless limit && seconds >= limit

          @shutdown.fail("no worker has been ready for #{seconds.floor} s (give_up after: #{format("%g", limit)}): " \
                         "#{reason}", detail)
          true
        end
      end

      # The new generations of all pools in a reload, seen by Reload as one generation. All molds boot before any worker
      # is replaced. The first pool, which has the clients, waits until the canaries of the others have passed. If the
      # new generation of one pool fails, the others are rolled back as far as possible. Owned by Pools, in the monitor.
      class Release
        # The canary has passed.
        PROVED = %i[rolling current kept retired].freeze

        def initialize(pools, command, listeners)
          @pools = pools
          @command = command
          @listeners = listeners
          @members = {}
        end

        # A pool that shares the first one's boot joins later, and may have begun to refork meanwhile.
        def begin
          missing = @pools.reject { |pool| @members.key?(pool) }
          missing.each do |pool|
            @pools.about(pool) { join(pool) } unless pool.waits? || pool.generations.upcoming || @absent
          end
        end

        def proceed
          self.begin
          @members.each do |pool, generation|
            @pools.about(pool) { generation.go_on } if generation.ready? && may_go_on?(pool)
          end
        end

        def untried=(reason)
          @untried = reason
          @members.each_value { |generation| generation.untried = reason }
        end

        def unproven = @members.each_value.filter_map(&:unproven).first

        def number = @members[@pools.first]&.number

        def state
          return :refused if @absent
          return @members[lost].state if lost

          served? ? :current : :booting
        end

        # @return [Boolean] whether all pools have served it
        def served? = @pools.all? { |pool| @members[pool]&.served? }

        # @return [String, nil] why it failed
        def reason = lost && [lost.name, @absent ? @obstacle : @members[lost].reason].compact.join(": ")

        # @return [Pool, nil] the pool whose generation failed
        def lost = @absent || @members.find { |_, generation| lost?(generation) }&.first

        def roll_back(reason)
          @members.except(lost).each do |pool, generation|
            @pools.about(pool) { pool.generations.withdraw(generation, reason) }
          end
        end

        private

        # The kernel may refuse the process.
        def join(pool)
          @members[pool] = reload(pool).tap(&:hold)
        rescue Pando::Error => e
          @absent = pool
          @obstacle = e.message
        end

        def reload(pool)
          listeners = pool.serves? ? @listeners : []
          pool.generations.reload(@command, listeners).tap { |generation| generation.untried = @untried }
        end

        def lost?(generation)
          %i[discarded refused].include?(generation.state) || (generation.state == :retired && !generation.served?)
        end

        def may_go_on?(pool)
          return false if @members.size < @pools.count

          others = @members.except(pool).each_value
          return others.none?(&:booting?) unless pool.equal?(@pools.first)

          others.all? { |one| PROVED.include?(one.state) }
        end
      end

      private

      def proceed_with_release
        return roll_back if @release.lost

        @release.proceed
        @release = nil if @release.state == :current && !watching?
      end

      def roll_back
        @release.roll_back("#{@release.lost.name} does not run the new release")
        @release = nil
      end
    end
  end
end
