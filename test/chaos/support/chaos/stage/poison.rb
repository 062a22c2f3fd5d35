# frozen_string_literal: true

# What a release can have that boots and comes up like any other, and is sick all the same: each request finds out.
# Lives in the server under test.
class Poison
  KINDS = {
    "raises" => -> { raise "this release is sick" },
    "crashes" => -> { Process.kill("SEGV", Process.pid) && sleep },
    "burns" => lambda do
      deadline = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.03
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < deadline
    end,
    "leaks" => -> { (@kept ||= []) << ("x" * 2_097_152) }
  }.freeze

  # @param kind [String] see KINDS
  def initialize(app, kind)
    @app = app
    @harm = KINDS.fetch(kind)
  end

  def call(env)
    @harm.call
    @app.call(env)
  end
end
