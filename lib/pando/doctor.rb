# frozen_string_literal: true

require "pando/doctor/checks"
require "pando/doctor/examination"
require "pando/doctor/report"

module Pando
  # `pando doctor`: starts a server of its own with the user's application and configuration, lets it serve and refork,
  # watches its processes from inside and outside, and reports what a fork would break.
  #
  # Public are {.examine}, {Request}, {RequestList}, {Baseline}, {Report}, {NotExamined}, the methods of {LazyState} and
  # its Result; all else in Doctor is internal.
  module Doctor
    # @param config [Config]
    # @param requests [Array<Request>, RequestList, :routes, nil] nil: GET /, which the application need not know
    # @param reforks [Integer]
    # @param patience [Float] seconds for one answer @param headers [Hash{String => String}] of each request
    # @return [Report]
    # @raise [NotExamined] the application does not boot
    def self.examine(config, requests: nil, reforks: 1, patience: 10.0, headers: {})
      examination = Examination.new(config, requests: requests, reforks: reforks, patience: patience, headers: headers)
      started = Sys.now
      evidence = examination.run
      Report.new(evidence, config, Checks.run(evidence), examination.requests, Sys.now - started)
    end
  end
end
