# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/libraries/active_record_pools"

module Pando
  module Swarm
    module Runners
      # Shared code of the runners whose job libraries are part of a Rails app.
      #
      # @api private
      module RailsApp
        class << self
          # In the mold: loads the app, which brings the library with it. Leaves no connection open.
          #
          # @param kind [Kind] @param library [String] the name of its gem @param constant [Symbol] a constant that the
          #   gem defines
          # @raise [BootError]
          def load(kind, library, constant)
            RequiredFiles.load(kind)
            Object.const_defined?(constant) or raise BootError, missing(kind, library)
            disconnect
          end

          # Closes all connections of Active Record's pools. They are opened again when they are needed.
          def disconnect = ForkSafety::Libraries::ActiveRecordPools.disconnect

          # @param error [Exception]
          # @return [Boolean] whether the database is down for now, so that the query itself may be right
          def away?(error)
            error.is_a?(::ActiveRecord::ConnectionNotEstablished) || error.is_a?(::ActiveRecord::ConnectionFailed)
          end

          # Starts a thread beside the jobs that calls the block at intervals, the first time at once.
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

          # Wraps a block in the Rails executor, as code on other threads should be.
          def within(&) = ::Rails.application.executor.wrap(&)

          private

          def missing(kind, library)
            return "node :#{library} needs your app: add require: \"./config/environment.rb\"" if kind.files.empty?

            "node :#{library} needs the gem #{library}: the app that #{kind.files.join(", ")} loads does not have it " \
              "(bundle add #{library})"
          end
        end
      end
    end
  end
end
