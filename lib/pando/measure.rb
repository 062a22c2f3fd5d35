# frozen_string_literal: true

require "pando/measure/contest"
require "pando/measure/rails_routes"
require "pando/measure/rehearsal"
require "pando/measure/result"
require "pando/measure/selection"
require "pando/measure/stage"

module Pando
  # `pando measure`: the memory, CPU time and latency of the user's application on Puma and on Pando, side by side,
  # under the same requests. Runs in the process of the command; no server process loads it.
  #
  # @api private
  module Measure
    # The size of the load.
    #
    # @!attribute workers [Integer] of each server
    # @!attribute requests [Integer] of each worker
    # @!attribute clients [Integer] requests under way at once
    # @!attribute headers [Hash{String => String}] of each request
    # @!attribute against [Symbol] :puma, :none
    Plan = Struct.new(:workers, :requests, :clients, :headers, :against, keyword_init: true) do
      # @return [Integer] requests of each server
      def total = workers * requests
    end

    # @param config [Config] of the application
    # @param plan [Plan]
    # @param selection [Selection, nil] nil: the routes of a Rails application, / of others
    # @yieldparam words [String] what is being done
    # @yieldparam done [Integer, nil] of the load, how many requests
    # @yieldparam total [Integer, nil] of how many
    # @return [Result]
    # @raise [NotMeasured]
    def self.call(config, plan, selection = nil, &tell)
      Stage.open do |stage|
        selection ||= routes(config, stage, &tell)
        kinds = [(PumaSubject if plan.against == :puma && PumaSubject.program), PandoSubject].compact
        subjects = stage.start(kinds, config, workers: plan.workers) { |subject| tell.call("booting #{subject.name}") }
        tell.call("trying each request once")
        rehearsal = Rehearsal.new(subjects, selection, plan.headers).call
        Result.new(config, plan, rehearsal, Contest.new(subjects, rehearsal, plan, tell).call)
      end
    end

    def self.routes(config, stage)
      return Selection.of_root unless RailsRoutes.any?(config)

      yield "reading the routes"
      Selection.of_routes(RailsRoutes.paths(config, stage.folder))
    end
    private_class_method :routes
  end
end
