# frozen_string_literal: true

require "pando/cluster/control/snapshot"
require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      # What a client may ask for, by the first word of its line.
      #
      # @api private
      class Commands
        # What cannot be done as it was asked for; the message goes to the client.
        class Refused < Pando::Error; end

        STOPS = { "gracefully" => :gracefully, "quickly" => :quickly, "at_once" => :at_once }.freeze

        # @param cluster [Monitor]
        def initialize(cluster)
          @cluster = cluster
        end

        # @param line [String] from anybody
        # @param session [Session] told at once if the answer is known
        # @return [Task, nil] what it must wait for
        # @raise [Refused]
        def call(line, session)
          word, arguments = Record.decode(line)
          case word
          when "status" then status(session)
          when "refork" then task(Refork.new(@cluster, arguments["force"] == "yes"))
          when "reload" then task((arguments["cancel"] ? CancelReload : ReloadRelease).new(@cluster))
          when "upgrade" then task(UpgradeMonitor.new(@cluster))
          when "scale" then task(Scale.new(@cluster, workers(arguments)))
          when "drain" then task(arguments["undo"] ? Undrain.new(@cluster) : Drain.new(@cluster))
          when "stop" then stop(arguments)
          else raise Refused, "there is no such command"
          end
        end

        private

        def status(session)
          Snapshot.new(@cluster).each { |role, pairs| session.say(role, pairs) }
          session.finish("ok")
          nil
        end

        def task(task)
          raise Refused, "the server is stopping" if @cluster.ending?

          task
        end

        def workers(arguments)
          Integer(arguments["workers"], 10)
        rescue ArgumentError, TypeError
          raise Refused, "workers must be a number"
        end

        # A second one may be more impatient than the first.
        def stop(arguments)
          Stop.new(@cluster, STOPS.fetch(arguments.fetch("how", "gracefully")) { raise Refused, "no such way to stop" })
        end
      end
    end
  end
end
