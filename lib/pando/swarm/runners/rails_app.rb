# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/libraries/active_record_pools"

module Pando
  module Swarm
    module Runners
      # What the runners of job libraries that are part of a Rails application have in common.
      #
      # @api private
      module RailsApp
        class << self
          # In the mold: loads the application, which brings the library with it. No connection is left open.
          #
          # @param kind [Kind] @param library [String] the name of its gem @param constant [Symbol] what it defines
          # @raise [BootError]
          def load(kind, library, constant)
            RequiredFiles.load(kind)
            Object.const_defined?(constant) or raise BootError, missing(kind, library)
            disconnect
          end

          # Closes all connections of ActiveRecord's pools; each is made anew when it is needed.
          def disconnect = ForkSafety::Libraries::ActiveRecordPools.disconnect

          # @param error [Exception]
          # @return [Boolean] whether the database is out of reach for now; nothing is wrong with what was asked
          def away?(error)
            error.is_a?(::ActiveRecord::ConnectionNotEstablished) || error.is_a?(::ActiveRecord::ConnectionFailed)
          end

          # A thread beside the jobs, which looks after them at intervals; the first time at once.
          #
          # @param name [String] @param interval [Numeric] seconds
          # @return [ForkSafety::BackgroundThread]
          def beside(name, interval, &look)
            ForkSafety.thread(name, late: :kill) do |thread|
              loop do
                within(&look)
                break if thread.wait(interval)
              end
            end
          end

          # As the application wants to have its code run in a thread that is not its own.
          def within(&) = ::Rails.application.executor.wrap(&)

          private

          def missing(kind, library)
            return "node :#{library} needs the application: require: \"./config/environment.rb\"" if kind.files.empty?

            "node :#{library} needs the gem #{library}: the application that #{kind.files.join(", ")} loads has not " \
              "got it (bundle add #{library})"
          end
        end
      end
    end
  end
end
