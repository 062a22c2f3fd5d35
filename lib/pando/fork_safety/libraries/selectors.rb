# frozen_string_literal: true

require "pando/fork_safety/libraries/cable_server"
require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/libraries/preparation"
require "pando/fork_safety/status"
require "pando/fork_safety/weak_set"

module Pando
  module ForkSafety
    module Libraries
      # The selectors of nio4r that are open in this process. A child would share the epoll set of each, so the process
      # must not be forked until they are closed. Action Cable's own selector does not count while it is in use: it is
      # closed before a fork, see {CableServer}.
      #
      # Lives in molds and workers.
      #
      # @api private
      module Selectors
        OBSTACLE = :nio4r
        REASON = "nio4r: a selector is open, and a child would share its epoll set"

        # Notices when a selector is made or closed.
        module Watch
          def initialize(...)
            super
            Selectors.made(self)
          end

          def close(...) = super.tap { Selectors.review }
        end

        @made = WeakSet.new
        @cable = WeakSet.new # those of Action Cable among them
        @watched = false

        class << self
          # From now on selectors are known when they are made; those that exist already are looked for once.
          #
          # @return [nil]
          def watch
            owner = Constants.find("NIO::Selector")
            return if @watched || !owner

            @watched = true
            owner.prepend(Watch)
            ObjectSpace.each_object(owner) { |selector| @made.add(selector) }
            nil
          end

          # @param selector [NIO::Selector]
          # @return [nil]
          def made(selector)
            @cable.add(selector) if CableServer.starting?
            @made.add(selector)
            review
          end

          # Says whether an open selector stands against a fork.
          #
          # @return [nil]
          def review
            foreign = live.reject { |selector| @cable.include?(selector) }
            foreign.any? ? ForkSafety.obstruct(OBSTACLE, REASON) : ForkSafety.clear(OBSTACLE)
          end

          # @return [Array<NIO::Selector>] those that are open
          def live = @made.to_a.reject(&:closed?)

          # In a process that is about to fork, when Action Cable has closed its own.
          #
          # @return [nil]
          # @raise [Obstructed]
          def refuse_live
            watch
            return review if live.empty?

            ForkSafety.obstruct(OBSTACLE, REASON)
            raise Obstructed, REASON.delete_prefix("nio4r: ")
          end
        end
      end
    end
  end
end
