#include <cuda_runtime.h>
#include <cuda.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>
#include <map>
#define CK(x) do{cudaError_t e=(x); if(e){printf("%s: %s\n",#x,cudaGetErrorString(e)); exit(1);} }while(0)
__device__ static void mix(unsigned *state, unsigned words, unsigned scalar, unsigned own) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        unsigned value = (scalar + own) * 2654435761u + gridDim.x * 40503u + i;
        if (own & 1) atomicXor(&state[i], value); else atomicAdd(&state[i], value);
    }
}
#define K(n) __global__ void k##n(unsigned*s,unsigned w,unsigned c){mix(s,w,c,n);}
K(0) K(1) K(2) K(3) K(4) K(5) K(6) K(7)
typedef void(*kf)(unsigned*,unsigned,unsigned);
static kf ks[8]={k0,k1,k2,k3,k4,k5,k6,k7};
static unsigned*st; static cudaStream_t S, S2, SP, SN;
static double now(){timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e6+t.tv_nsec*1e-3;}
static void launch(unsigned p,cudaStream_t s){ks[(p*7+p/11)%8]<<<2,32,0,s>>>(st,64,p);}
static cudaGraphExec_t mk(int from,int n,unsigned long long flags,int how){
    cudaGraph_t g; cudaGraphExec_t e;
    if(how==0||how==2){ CK(cudaStreamBeginCapture(S2,cudaStreamCaptureModeThreadLocal)); for(int i=0;i<n;i++)launch(from+i,S2); CK(cudaStreamEndCapture(S2,&g)); }
    else { CK(cudaGraphCreate(&g,0)); cudaGraphNode_t prev=0,nd; unsigned w=64; for(int i=0;i<n;i++){unsigned p=from+i; void*a[]={&st,&w,&p}; cudaKernelNodeParams kp={}; kp.func=(void*)ks[(p*7+p/11)%8]; kp.gridDim=dim3(2); kp.blockDim=dim3(32); kp.kernelParams=a; CK(cudaGraphAddKernelNode(&nd,g,prev?&prev:0,prev?1:0,&kp)); prev=nd;} }
    cudaError_t er=cudaGraphInstantiate(&e,g,flags); if(er){printf("inst flags %llx: %s\n",flags,cudaGetErrorString(er)); cudaGetLastError(); cudaGraphDestroy(g); return 0;}
    cudaGraphUpload(e,S); cudaStreamSynchronize(S); cudaGraphDestroy(g); return e;
}
struct cfg{std::string name; std::vector<int> parts; unsigned long long flags=0; int how=0; int stream=0; int sync=0; std::vector<cudaGraphExec_t> ex; std::vector<double> t,h;};
int main(){
    CK(cudaMalloc(&st,256)); CK(cudaMemset(st,0,256)); CK(cudaStreamCreate(&S)); CK(cudaStreamCreateWithFlags(&S2,cudaStreamNonBlocking)); CK(cudaStreamCreateWithPriority(&SP,cudaStreamNonBlocking,-5)); CK(cudaStreamCreateWithFlags(&SN,cudaStreamNonBlocking));
    for(int i=0;i<8;i++)launch(i,S); CK(cudaDeviceSynchronize());
    std::vector<cfg> C; auto add=[&](std::string n,std::vector<int> p,unsigned long long f=0,int how=0,int stream=0,int sync=0){cfg c; c.name=n;c.parts=p;c.flags=f;c.how=how;c.stream=stream;c.sync=sync;C.push_back(c);};
    add("whole",{1000}); add("whole-api",{1000},0,1); add("whole-prio",{1000},cudaGraphInstantiateFlagUseNodePriority); add("whole-devlaunch",{1000},cudaGraphInstantiateFlagDeviceLaunch); add("whole-autofree",{1000},cudaGraphInstantiateFlagAutoFreeOnLaunch);
    add("whole-stream-nonblocking",{1000},0,0,1); add("whole-stream-prio",{1000},0,0,2); add("whole-query",{1000},0,0,0,1); add("whole-event",{1000},0,0,0,2);
    add("p4,24,144,828",{4,24,144,828}); add("same-devlaunch",{4,24,144,828},cudaGraphInstantiateFlagDeviceLaunch); add("same-query",{4,24,144,828},0,0,0,1);
    add("p4,996",{4,996}); add("p8,86,906",{8,86,906}); add("p6,80,914",{6,80,914}); add("p500,500",{500,500}); add("p250x4",{250,250,250,250}); add("p125x8",{125,125,125,125,125,125,125,125});
    add("e,999",{0,999}); add("4,e,995",{4,0,995}); add("500,e,499",{500,0,499}); add("2,998",{2,998}); add("1,999",{1,999}); add("999,e",{999,0});add("1,1,998",{1,1,998});
    for(int n: {1,4,8,16,24,32,48,64,96,128,144,192,255,256,257,384,511,512,513,640,768,828,900}) add("n"+std::to_string(n),{n});
    for(auto&c:C){int at=0;for(int p:c.parts){ if(p==0){c.ex.push_back(0);at++;} else {auto e=mk(at,p,c.flags,c.how); if(!e){c.parts.clear();break;} c.ex.push_back(e);at+=p;}}}
    cudaEvent_t ev; CK(cudaEventCreateWithFlags(&ev,cudaEventDisableTiming));
    for(int round=0;round<14;round++) for(auto&c:C){ if(c.parts.empty())continue; cudaStream_t s=c.stream==1?SN:c.stream==2?SP:S;
        for(int r=0;r<30;r++){ double b=now(); int at=0; for(size_t i=0;i<c.parts.size();i++){ if(c.ex[i]){cudaGraphLaunch(c.ex[i],s);at+=c.parts[i];} else launch(at++,s);} double h=now(); if(c.sync==0)cudaStreamSynchronize(s); else if(c.sync==1){while(cudaStreamQuery(s)==cudaErrorNotReady);} else {cudaEventRecord(ev,s);cudaEventSynchronize(ev);} double e=now(); if(round>=2&&r>=4){c.t.push_back(e-b);c.h.push_back(h-b);} } }
    CK(cudaGetLastError());
    for(auto&c:C){ if(c.parts.empty()){printf("%-26s refused\n",c.name.c_str());continue;} std::sort(c.t.begin(),c.t.end()); std::sort(c.h.begin(),c.h.end()); size_t n=c.t.size(); printf("%-26s median %8.2f p10 %8.2f p90 %8.2f host %6.2f\n",c.name.c_str(),c.t[n/2],c.t[n/10],c.t[n*9/10],c.h[n/2]); }
}
