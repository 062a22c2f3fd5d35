# frozen_string_literal: true

require "pando/native"
require "pando/fork_safety/finding"
require "pando/doctor/lazy_state/examination"
require "pando/doctor/lazy_state/html"
require "pando/doctor/lazy_state/observation"
require "pando/doctor/lazy_state/result"

module Pando
  module Doctor
    # What an application builds only when a request asks for it: memos, constants, files, methods, templates.
    # Each worker then builds and keeps a copy of its own, which the mold could have made once for all of them.
    #
    #     result = Pando::Doctor::LazyState.examine { |number| app.call(env) }
    #     result.findings # => [#<Pando::ForkSafety::Finding ...>, ...]
    #     result.figures  # => { requests: [...], lines: [...], classes: [...], pages: {...} }
    #
    # docs/lazy-state.md says how it is measured and how to read it.
    module LazyState
      # How often the same request is sent: the first one against those that follow.
      REQUESTS = 6

      class << self
        # Serves the requests in forked children of this process, which stays as it is: one child for the objects, one
        # for the pages of memory, one for the calls (the tracing of the first would show in the others).
        #
        # @param requests [Integer] of the same kind, 2 or more
        # @param root [String] folder of the application's own files
        # @param timeout [Numeric] seconds for a child
        # @param prepare [#call, nil] run in each child before it is measured: what a worker's hooks do
        # @param sample [#call, nil] serves fewer requests than the block, for pages and calls, of which there is only
        #   a table: called with a number as the block is
        # @param parallel [Boolean] whether the children may run at the same time; false where they would use one
        #   inherited descriptor
        # @yieldparam number [Integer] 1 for the first request; the block serves it to its end
        # @return [Result]
        # @raise [Examination::Failed] when the child for the objects failed or took too long. Of another one its table
        #   is missing, and the figure :undone says why
        def examine(requests: REQUESTS, root: Dir.pwd, timeout: Examination::TIMEOUT, prepare: nil, sample: nil,
                    parallel: true, &request)
          Examination.new(requests: requests, root: root, timeout: timeout, prepare: prepare, parallel: parallel)
                     .run(sample || request, &request)
        end

        # The same in this process, without the pages and calls. It has to be one that has served nothing yet and
        # will be thrown away.
        #
        # @return [Result]
        # @raise whatever a request raises
        def observe(requests: REQUESTS, root: Dir.pwd, &request)
          Observation.new(requests: requests, root: root).run(&request)
        end

        # For a process that gets its requests from outside: {before} the first one, {between} two, {after} the
        # last one. After a single request everything that it has left counts as lazy, and nothing as growth.
        #
        # @return [nil]
        def before(root: Dir.pwd)
          @observation = Observation.new(root: root)
          @observation.start
          nil
        end

        # @return [nil]
        def between
          @observation.next_request
          nil
        end

        # @return [Hash{Symbol => Object}] findings: Array<ForkSafety::Finding>, figures: Hash
        def after
          result = @observation.finish
          { findings: result.findings, figures: result.figures }
        ensure
          @observation = nil
        end
      end
    end
  end
end
