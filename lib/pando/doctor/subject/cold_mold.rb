# frozen_string_literal: true

# The program of the stage's cold mold: as server/cold_mold.rb, with the doctor's payload.

%w[INT TERM QUIT HUP].each { |name| trap(name, "IGNORE") }

require "pando/cluster"

Pando::Cluster::Boot.run do
  require "pando"
  require "pando/doctor/subject/payload"
  Pando::Doctor::Subject::Payload.build(ARGV)
end
