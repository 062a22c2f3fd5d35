# frozen_string_literal: true

# The app LAB_APP, each of whose requests waits BENCH_WAIT milliseconds first, as for another service.

BEHIND_A_WAIT = Integer(ENV.fetch("BENCH_WAIT")) / 1000.0

use(Class.new do
  def initialize(app)
    @app = app
  end

  def call(env)
    sleep(BEHIND_A_WAIT)
    @app.call(env)
  end
end)
run Rack::Builder.parse_file(ENV.fetch("LAB_APP"))
