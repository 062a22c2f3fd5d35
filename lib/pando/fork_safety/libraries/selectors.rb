# frozen_string_literal: true

require "pando/fork_safety/libraries/cable_server"
require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/status"
require "pando/fork_safety/weak_set"

module Pando
  module ForkSafety
    module Libraries
      # The selectors of nio4r that are open in this process. A child would share the epoll set of each, so the process
      # must not be forked until they are closed. Action Cable's own selector does not count while it is in use, because
      # {CableServer} closes it before a fork.
      #
      # A selector's methods wait while another thread is in its #select, which may be for ever. So this module does not
      # ask selectors whether they are closed, but notices their #close.
      #
      # Lives in molds and workers.
      module Selectors
        OBSTACLE = :nio4r
        REASON = "nio4r: a selector is open, and a child would share its epoll set"

        # Seconds to ask a selector that was made before anybody looked. One that does not answer is in use.
        ASK = 0.1

        # Notices new and closed selectors.
        module Watch
          def initialize(...)
            super
            Selectors.made(self)
          end

          def close(...) = super.tap { Selectors.ended(self) }
        end

        @made = WeakSet.new
        @closed = WeakSet.new
        @cable = WeakSet.new # those that belong to Action Cable

        class << self
          # From now on, notices each new selector. Finds the existing ones once.
          def watch
            owner = Constants.prepend_once("NIO::Selector", Watch) or return
            ObjectSpace.each_object(owner).each { |selector| add(selector) }
            nil
          end

          def made(selector)
            @cable.add(selector) if CableServer.starting?
            @made.add(selector)
            review
          end

          def ended(selector)
            @closed.add(selector)
            review
          end

          # Sets or clears the obstacle, depending on whether a selector is open.
          def review
            foreign = live.reject { |selector| @cable.include?(selector) }
            foreign.any? ? ForkSafety.obstruct(OBSTACLE, REASON) : ForkSafety.clear(OBSTACLE)
          end

          # @return [Array<NIO::Selector>] the open selectors
          def live = @made.to_a.reject { |selector| @closed.include?(selector) }

          # Called in a process that is about to fork, after Action Cable has closed its own.
          #
          # @raise [Obstructed]
          def refuse_live
            return review if live.empty?

            ForkSafety.obstruct(OBSTACLE, REASON)
            raise Obstructed, REASON.delete_prefix("nio4r: ")
          end

          private

          def add(selector)
            @made.add(selector)
            question = Thread.new { selector.closed? }
            @closed.add(selector) if question.join(ASK)&.value
          ensure
            question&.kill
          end
        end
      end
    end
  end
end
