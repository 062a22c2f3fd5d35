# frozen_string_literal: true

require "pando/sys/mapping"
require "pando/wording"

module Pando
  # Compares the machine code that YJIT has compiled in a worker with YJIT's limit, for reports.
  #
  # @api private
  class CodeBound
    include Wording

    MIB = 1024 * 1024
    # Share of the limit in use from which there is too little room for further code.
    FULL = 0.95
    # Requests after which a worker compiles little more.
    SETTLED = 1000
    # A smaller limit is proposed if the current one is at least FAR times as large. ROOM is the proposal's factor over
    # the code in use.
    ROOM = 1.5
    FAR = 2
    # The smallest limit to propose: a later release or a rare request may need room.
    LEAST = 8 * MIB

    # @param pid [Integer] of a worker @param code [Integer] bytes of code that it has compiled
    # @param requests [Integer] that it has served
    # @return [CodeBound, nil] nil: the worker has no YJIT, or its memory cannot be read
    def self.of(pid, code, requests)
      region = Sys::CodeRegion.of(pid, code) if code.to_i.positive?
      new(region.used, region.bound, requests) if region
    rescue SystemCallError
      nil
    end

    # @param used [Integer] bytes @param bound [Integer] bytes @param requests [Integer] served
    def initialize(used, bound, requests)
      @used = used
      @bound = bound
      @requests = requests
    end

    def to_s = "#{mebibytes(@used)} of #{mebibytes(@bound)} for code in use#{"; #{advice}" if advice}"

    # @return [String, nil]
    def advice
      if @used >= FULL * @bound then "that is full, what is called later is not compiled: #{option(@bound * 2)}"
      elsif @requests >= SETTLED && @bound >= FAR * enough then "#{option(enough)} is enough"
      end
    end

    private

    def enough = [(@used * ROOM / MIB).ceil * MIB, LEAST].max
    def option(bytes) = "--yjit-exec-mem-size=#{(bytes / MIB.to_f).ceil}"
  end
end
