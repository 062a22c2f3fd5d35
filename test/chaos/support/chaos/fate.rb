# frozen_string_literal: true

module Chaos
  # The outcome of one request, as the load reports it.
  Fate = Struct.new(:id, :kind, :verb, :began, :ended, :outcome, :status, :pid, :overslept, :detail) do
    # @param line [String] see Load::Exchange#to_s
    def self.parse(line)
      id, kind, verb, began, ended, outcome, status, pid, overslept, detail = line.chomp.split(" ", 10)
      new(id, kind, verb, began.to_f, ended.to_f, outcome.to_sym, status.to_i, pid.to_i, overslept.to_f, detail)
    end

    def answered? = outcome == :answered
    # Whether a retry could not run it twice.
    def safe? = verb == "GET"
    # Whether the worker writes the answer to the socket itself. The reactor sends no 502 any more once the worker is
    # about to write, so a worker that dies just then closes the connection.
    def answered_by_worker? = kind == "upload"
    # In the terms of Fault#failures.
    def symptom = outcome == :refused ? status : outcome

    def to_s
      format("%<verb>s %<id>s (%<kind>s) %<symptom>s %<detail>s after %<seconds>.2f s, asked at %<began>.3f",
             verb: verb, id: id, kind: kind, symptom: symptom, detail: detail, seconds: ended - began, began: began)
    end
  end
end
