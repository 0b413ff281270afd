import "./terminal.test";
import "./tool.test";
import "./settings.test";
import "./restart.test";
import "./turnOn.test";
import "./tasks.test";
import "./confine.test";
import "./agent.test";
