# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/generations/footprint"
require "pando/cluster/generations/mold_releaser"
require "pando/cluster/generations/service_record"
require "pando/cluster/generations/vitals"

module Pando
  module Cluster
    class Generations
      # Looks at the generation that serves, now and then and for next to nothing: requests and CPU time of its
      # workers, and its memory. Nothing is looked at while a worker comes or goes.
      #
      # Owned by Reforks, in the monitor.
      #
      # @api private
      class Survey
        include Brief
        extend Serializable

        # Seconds between two looks, and for each worker: one costs some 25 microseconds.
        TICK = 0.5
        EACH = 0.05
        # And while its memory is not known.
        HASTE = 0.02
        # And while nothing is to be decided.
        CALM = 5.0

        serialize number: :integer, line: :integer, began_at: :number, record: ServiceRecord

        # @param generations [#current, #outdated?, #passed?]
        # @param gauge [Memory::Gauge]
        # @param options [#mold] a mold that may be let go is not counted, see MoldReleaser
        def initialize(roster, generations, gauge, options)
          @roster = roster
          @generations = generations
          @options = options
          @footprint = Footprint.new(roster, gauge)
          @record = ServiceRecord.new
          @due = 0.0
        end

        # @return [Float] when there may be more to see
        attr_reader :due

        # @param reforks [Integer] see Vitals
        # @return [Vitals, nil] nil: it is not time, or not the moment
        def look(reforks, now = Sys.now)
          generation = @generations.current
          return if now < due || generation.nil?

          workers = @roster.workers
          @due = now + [TICK, workers.size * EACH].max
          return if workers.empty? || !workers.all? { |worker| worker.ready? && !@generations.outdated?(worker) }

          take(generation, workers, now)
          vitals(reforks, workers, now)
        end

        # Nothing is to be decided soon.
        def relax(now = Sys.now)
          @due = now + CALM unless @footprint.wanting?
        end

        private

        def vitals(reforks, workers, now)
          Vitals.new(generation: @line, reforks: reforks, seconds: now - @began_at, workers: workers.size,
                     age: @served, most: workers.map(&:requests).max, warmed: warmed(workers.map(&:requests)),
                     pss: @footprint.pss, private: @footprint.private, cpu: @record.cpu)
        end

        # The first requests warm most.
        def warmed(requests)
          most = Math.log(1 + requests.max)
          most.zero? ? requests.size.to_f : requests.sum { |count| Math.log(1 + count) } / most
        end

        def take(generation, workers, now)
          @line ||= @number # a Pando that did not know of it has left no other
          begin_with(generation, now) unless goes_on?(generation)
          @number = generation.number
          before = @served
          @record.add(workers)
          @served = @record.requests
          members = [*workers, (generation.mold if counts?(workers))].select { |child| child&.pidfd }
          others = @roster.molds.select(&:pidfd) - members
          @footprint.look(members, others, idle: before == @served, now: now)
          @due = now + HASTE if @footprint.wanting?
        end

        # Its mold is new, no worker is.
        def goes_on?(generation)
          generation.number == @number || (generation.heal? && !generation.source.nil? && serves?(@line))
        end

        # Nobody has taken its workers' place, nor has it come to nothing.
        def serves?(number) = !number.nil? && !@generations.passed?(number)

        # Whether what it alone has is there to stay.
        def counts?(workers) = @options.mold == :keep || workers.size < MoldReleaser::LEAST

        # What a mold has had since it was promoted is in the price; one that booted from cold has loaded the app.
        def begin_with(generation, now)
          @line = generation.number
          @began_at = now
          @record = ServiceRecord.new
          promoted = Sys::Scheduler.cpu_time(generation.mold.pid) if generation.source && generation.mold
          @record.share(promoted || 0.0)
        end
      end
    end
  end
end
