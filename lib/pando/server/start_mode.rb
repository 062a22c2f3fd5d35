# frozen_string_literal: true

require "pando/cluster/start"
require "pando/cluster/upgrade/rehearsal"

module Pando
  class Server
    # Whether this process is to start a server, to go on with one whose monitor another image of it has been, or
    # only to try whether it could: the environment says so.
    #
    # @api private
    module StartMode
      Resumption = Cluster::Upgrade::Resumption
      Rehearsal = Cluster::Upgrade::Rehearsal
      private_constant :Resumption, :Rehearsal

      class << self
        # @yieldparam start [Cluster::Start]
        # @yieldreturn [Cluster::Monitor]
        # @return [Cluster::Monitor] that is prepared
        def enter(environment = ENV)
          @manner, reason = [Resumption::VARIABLE, Resumption::REASON].map { |name| environment.delete(name) }
          return yield(Cluster::Start.new).prepare unless @manner
          return yield(Resumption.from(@manner, reason)).prepare unless @manner == Rehearsal::VALUE

          Rehearsal.perform { |start| yield(start).prepare }
        end

        # It did not come to a monitor that serves: a cluster that lives is given back to whoever had it. Returns
        # where there is none.
        #
        # @param error [Exception]
        # @return [nil]
        def refuse(error, environment = ENV)
          manner = @manner || environment[Resumption::VARIABLE] or return
          reason = error.is_a?(Pando::Error) ? error.message : "#{error.message} (#{error.class})"
          Rehearsal.fail(reason) if manner == Rehearsal::VALUE
          Resumption.go_back(manner, reason) if manner.start_with?("take:")
        end
      end
    end
  end
end
