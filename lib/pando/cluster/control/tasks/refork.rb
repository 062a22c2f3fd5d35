# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # The next generation from a warm worker.
        class Refork < Task
          REFUSALS = %w[refork.refused refork.withheld].freeze
          private_constant :REFUSALS

          # @param pool [Pool] whose it is
          # @param force [Boolean] see Generations#refork
          def initialize(cluster, pool, force)
            super(cluster)
            @pool = pool
            @name = (pool.name if cluster.pools.several?)
            @force = force
          end

          # Workers that come or go, as they do after the last refork, are waited for; but not for ever.
          def start
            @until = Sys.now + @pool.options.stop_timeout + @pool.options.longest_request.to_f
            check
          end

          def check
            return if @begun || (@pool.generations.passer && Sys.now < @until)

            @begun = true
            @cluster.pools.about(@pool) { @pool.generations.refork("pando refork", force: @force) }
            @number = @pool.generations.upcoming&.number unless over?
          end

          def observe(event)
            return unless event[:pool] == @name && @begun
            return give_up("refused: #{event[:reason]}") if REFUSALS.include?(event.name) && @number.nil?

            observe_generation(event) if @number && event[:generation] == @number
          end

          def obstacle
            return coming_or_going unless @begun

            upcoming = @pool.generations.upcoming
            return unless upcoming && upcoming.number == @number

            source_at_work(upcoming.mold) || thread_on_trial
          end

          private

          def observe_generation(event)
            case event.name
            when "canary.unproven" then @unproven = ", without proof: #{event[:reason]}"
            when "refork.finished"
              achieve("every worker runs generation #{@number}, after #{event[:seconds]} s#{@unproven}")
            when "generation.refused" then give_up("refused: #{event[:reason]}")
            when "generation.discarded" then give_up("generation #{@number} was discarded: #{event[:reason]}")
            when "generation.retired" then give_up("generation #{@number} has lost its mold")
            end
          end

          # Said once of each: that its request has ended is no news.
          def coming_or_going
            worker = @pool.generations.passer or return
            @told ||= {}.compare_by_identity
            @told[worker] ||= passing(worker)
            [@told[worker], @until - Sys.now]
          end

          def passing(worker)
            busy = ", and #{engagement(worker)}" if worker.pid && worker.job.any?
            "#{title(worker)} is #{worker.leaving? ? "leaving" : "starting"}#{busy}"
          end

          # The worker that was chosen forks between two requests.
          def source_at_work(mold)
            return unless mold&.ordered? && mold.source&.job&.any?

            ends = [mold.deadline, (mold.source.row.hard_deadline unless @pool.options.jobs)].compact.min
            ["#{title(mold.source)} #{engagement(mold.source)}", ends - Sys.now]
          end

          def thread_on_trial
            generations = @pool.generations
            generations.occupation if generations.on_trial? && generations.lost_threads.pending?
          end

          def achieve(text) = super([*@name, text].join(": "))
          def give_up(text) = super([*@name, text].join(": "))
        end
      end
    end
  end
end
