# frozen_string_literal: true

require "pando/cluster/start"
require "pando/cluster/upgrade/resumption"

module Pando
  class Server
    # Decides by the environment whether this process starts a server, continues one whose monitor another image of the
    # same process was, or only tries whether it could.
    module StartMode
      Resumption = Cluster::Upgrade::Resumption
      Rehearsal = Cluster::Upgrade::Rehearsal

      class << self
        def enter(environment = ENV)
          @manner, reason = [Resumption::VARIABLE, Resumption::REASON].map { |name| environment.delete(name) }
          return yield(Cluster::Start.new).prepare unless @manner
          return yield(Resumption.from(@manner, reason)).prepare unless @manner == Rehearsal::VALUE

          Rehearsal.perform { |start| yield(start).prepare }
        end

        # No monitor has begun to serve. Gives a running cluster back to the former image. Returns if there is none.
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
