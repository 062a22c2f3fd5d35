# frozen_string_literal: true

require "pando/mebibytes"
require "pando/sys/code_region"

module Pando
  # What is to be said of the bound that YJIT has for its code, from what a worker has made of it: for reports.
  #
  # @api private
  class CodeBound
    include Mebibytes

    MIB = 1024 * 1024
    # Of the bound: the rest is too little for what is compiled next.
    FULL = 0.95
    # Requests after which little more is compiled.
    SETTLED = 1000
    # Of what is used, where a lower bound is proposed; and how far above that the bound is then at least.
    ROOM = 1.5
    FAR = 2
    # What no proposal goes below, for a next release or a rarer request.
    LEAST = 8 * MIB

    # @param pid [Integer] of a worker @param code [Integer] bytes that it has compiled
    # @param requests [Integer] that it has served
    # @return [CodeBound, nil] nil: there is no YJIT, or it cannot be seen
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

    # @return [String]
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
